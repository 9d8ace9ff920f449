package top

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"
)

// reader reads what is new, again and again. It is used by one goroutine at a time.
type reader struct {
	endpoint *Endpoint
	minute   []string // the metrics of which it reads the whole last minute, one each time
	page     *url.URL // nil while it was not found
	kind     kind
	last     int64  // the newest second that it has
	known    string // a resource that has this second
	fresh    bool   // there was a new connection since then
	before   *counts
}

// answer is what was new.
type answer struct {
	samples   []sample
	newest    int64
	restarted bool // the process is not the one that answered last
	plain     bool // there is no page of seconds
	err       error
}

// read asks for the seconds since the last time; the first time, for the last minute.
func (r *reader) read(ctx context.Context) answer {
	a, err := r.try(ctx)
	if a.err = err; err != nil {
		if isStatus(err) {
			r.page = nil // perhaps it is somewhere else now
		}
		return a
	}
	for i := range a.samples {
		if s := &a.samples[i]; s.unix == a.newest && s.metric == inFlight {
			r.last, r.known = s.unix, s.resource
			break
		}
	}
	return a
}

func (r *reader) try(ctx context.Context) (a answer, err error) {
	if r.page == nil {
		if err := r.find(ctx); err != nil {
			return a, err
		}
	}
	if r.kind == metricsPage {
		return r.readMetrics(ctx)
	}
	p, at, err := r.ask(ctx, 1, "")
	if err != nil {
		return a, err
	}
	if p.kind() != secondsPage {
		err := fmt.Errorf("%s is not the page of seconds any more", clean(r.page.Redacted()))
		r.page = nil
		return a, err
	}
	if a.samples, err = p.seconds(); err != nil {
		return a, err
	}
	until := newest(a.samples)
	if until == 0 { // there is no resource
		a.newest = at.Unix() - 1
		return a, nil
	}
	a.newest = until
	if r.last > 0 && r.fresh {
		a.restarted = r.restarted(ctx, until)
	}
	r.fresh = false
	missed, err := r.missed(ctx, until)
	for _, s := range missed {
		if s.unix < until { // what ended since is not complete
			a.samples = append(a.samples, s)
		}
	}
	return a, err
}

// few is how many missed seconds are asked for at once. After more the whole minute is asked for, one metric each time, so
// that no answer is very large and the first is there soon.
const few = 5

// missed is what is missing before the second until.
func (r *reader) missed(ctx context.Context, until int64) ([]sample, error) {
	window, metric := int64(minute), ""
	if gap := until - r.last - 1; r.last > 0 && gap > 0 {
		if window = gap + 2; gap > few { // one may end meanwhile
			r.minute = onPage[:]
		}
	}
	if window > few+2 {
		if len(r.minute) == 0 {
			return nil, nil
		}
		window, metric, r.minute = minute, r.minute[0], r.minute[1:]
	}
	p, _, err := r.ask(ctx, window, metric)
	if err != nil {
		return nil, err
	}
	return p.seconds()
}

// get asks for a page, and returns the time there.
func (r *reader) get(ctx context.Context, u *url.URL, q url.Values) (page, time.Time, error) {
	p, a, err := r.endpoint.get(ctx, u, q)
	r.fresh = r.fresh || a.fresh
	return p, a.at, err
}

// ask asks the page of seconds for the last so many; for a whole minute it may answer with fewer. Without a metric it asks
// for all.
func (r *reader) ask(ctx context.Context, window int64, metric string) (page, time.Time, error) {
	q := url.Values{"metric": onPage[:]}
	if metric != "" {
		q.Set("metric", metric)
	}
	if window < minute {
		q.Set("window", fmt.Sprintf("%ds", window))
	}
	return r.get(ctx, r.page, q)
}

// restarted reports whether the process has not counted the last second that is known: what another one has logged lacks
// what was in flight. If it cannot tell it says no.
func (r *reader) restarted(ctx context.Context, until int64) bool {
	window := time.Duration(until-r.last+2) * time.Second
	p, _, err := r.get(ctx, r.page, url.Values{
		"metric": {onPage[inFlight]}, "resource": {r.known}, "window": {window.String()},
	})
	if err != nil {
		return false
	}
	samples, err := p.seconds()
	for _, s := range samples {
		if s.unix == r.last {
			return false
		}
	}
	return err == nil
}

func isStatus(err error) bool { return errors.As(err, new(*statusError)) }

// find looks for the page of seconds, or else for that of metrics.
func (r *reader) find(ctx context.Context) error {
	var errs []error
	var metrics *url.URL
	for _, u := range r.endpoint.pages() {
		p, _, err := r.get(ctx, u, url.Values{"metric": {onPage[pass]}, "window": {"1s"}})
		switch {
		case err != nil:
			errs = append(errs, err)
			if !isStatus(err) {
				return err // the other page is not there either
			}
		case p.kind() == secondsPage:
			r.page, r.kind = u, secondsPage
			return nil
		case p.kind() == metricsPage && metrics == nil:
			metrics = u
		case p.kind() == foreign:
			errs = append(errs, fmt.Errorf("%s has metrics, but none of windowstat", clean(u.Redacted())))
		}
	}
	if metrics == nil {
		return errors.Join(errs...)
	}
	r.page, r.kind, r.before = metrics, metricsPage, nil
	return nil
}
