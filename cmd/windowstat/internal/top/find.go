package top

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// errNoSeconds ends the error of an endpoint without a per-second page.
var errNoSeconds = errors.New("there is no per-second page; pass host:port of a service that serves\n" + secondsPath + " (package exporter), or the URL of that page")

// find finds the per-second page. Its error says what there is instead.
func (r *reader) find(ctx context.Context) error {
	var all []error
	absent := false
	for _, u := range r.endpoint.pages() {
		p, known, err := r.probe(ctx, u)
		switch {
		case err == nil && p.hasSeconds():
			r.page, r.names = u, known
			return nil
		case err == nil:
			err = fmt.Errorf("%s has metrics, but no seconds", clean(u.Redacted()))
			absent = true
		case statusOf(err) == 0:
			return err // the other page would fail alike
		}
		all, absent = append(all, err), absent || statusOf(err) == http.StatusNotFound
	}
	if absent {
		all = append(all, errNoSeconds)
	}
	return errors.Join(all...)
}

// probe requests the last second from a page, and returns the names that it knows of each metric. A page refuses requests
// for names that it does not know: an older windowstat has none of inbound traffic, and one that reads logs may have no
// response times.
func (r *reader) probe(ctx context.Context, u *url.URL) (p page, known [metrics][]string, err error) {
	ask := func(list ...string) (page, error) {
		p, _, err := r.get(ctx, u, url.Values{"metric": list, "window": {"1s"}})
		return p, err
	}
	var all []string
	for m := range known {
		known[m] = onPage[m].list()
		all = append(all, known[m]...)
	}
	refused := func(err error) bool { return statusOf(err) == http.StatusBadRequest }
	if p, err = ask(all...); !refused(err) {
		return p, known, err
	}
	if p, err = ask(onPage[pass].resources); err != nil {
		return nil, known, err
	}
	for m, list := range known {
		known[m] = nil
		for _, name := range list {
			switch _, err := ask(name); {
			case err == nil:
				known[m] = append(known[m], name)
			case !refused(err):
				return nil, known, err
			}
		}
	}
	return p, known, nil
}

// statusOf returns the status of the response that is the error, 0 if there was none.
func statusOf(err error) int {
	var s *statusError
	if errors.As(err, &s) {
		return s.status
	}
	return 0
}
