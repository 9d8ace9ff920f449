package top

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// errNoSeconds ends the error of an endpoint without a per-second page.
var errNoSeconds = errors.New("windowstat has its seconds at " + secondsPath + " unless told otherwise; package exporter serves them, or prom.NewSeconds")

// find finds the per-second page. Its error says what there is instead.
func (r *reader) find(ctx context.Context) error {
	var found, failed []error
	absent := false
	for _, u := range r.endpoint.pages() {
		p, _, err := r.get(ctx, u, url.Values{"metric": {onPage[pass]}, "window": {"1s"}})
		switch {
		case err != nil && statusOf(err) == 0:
			return err // the other page would fail alike
		case err != nil:
			failed = append(failed, err)
			absent = absent || statusOf(err) == http.StatusNotFound
		case p.kind() == secondsPage:
			r.page = u
			return nil
		case p.kind() == metricsPage:
			found = append(found, fmt.Errorf("%s has metrics of windowstat, but no seconds of resources", clean(u.Redacted())))
		default:
			found = append(found, fmt.Errorf("%s has metrics, but none of windowstat", clean(u.Redacted())))
		}
	}
	all := append(found, failed...)
	if absent || len(found) > 0 {
		all = append(all, errNoSeconds)
	}
	return errors.Join(all...)
}

// statusOf returns the status of the response that is the error, 0 if there was none.
func statusOf(err error) int {
	var s *statusError
	if errors.As(err, &s) {
		return s.status
	}
	return 0
}
