package top

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// reader polls an endpoint for new seconds. One goroutine at a time may use it.
//
// Each poll requests the last second with all metrics. What is missing before it is requested at once if it is a few seconds, and
// otherwise one metric with each poll, so that no response is very large and the first comes soon.
type reader struct {
	endpoint *Endpoint
	past     []metric // those whose past is still to be read, one each time
	window   int64    // how many seconds of it; 0 if not known yet
	page     *url.URL // nil until it is found
	untimed  bool     // the page knows no response times, as that of a log without durations
	last     int64    // the newest second read
}

// few is how many missed seconds are requested at once.
const few = 5

// answer is the result of one poll.
type answer struct {
	samples []sample
	newest  int64
	page    *url.URL // where the seconds are
	err     error
}

// read requests the seconds since the last time, or at first all that are kept.
func (r *reader) read(ctx context.Context) answer {
	a, err := r.try(ctx)
	if a.err, a.page = err, r.page; err != nil {
		if statusOf(err) != 0 {
			r.page = nil // it may have moved, or be of another version
		}
		return a
	}
	if len(a.samples) > 0 {
		r.last = a.newest
	}
	return a
}

func (r *reader) try(ctx context.Context) (a answer, err error) {
	var p page
	var now time.Time
	if r.page == nil {
		p, now, err = r.find(ctx)
	} else {
		p, now, err = r.ask(ctx, r.page, 1, every...)
	}
	if err != nil {
		return a, err
	}
	if !p.hasSeconds() {
		err := fmt.Errorf("%s is not the per-second page any more", clean(r.page.Redacted()))
		r.page = nil
		return a, err
	}
	if a.samples, err = p.seconds(); err != nil {
		return a, err
	}
	if a.newest = newest(a.samples); a.newest == 0 { // nothing was counted
		a.newest = now.Unix() - 1
		return a, nil
	}
	missed, err := r.missed(ctx, a.newest, resources(a.samples))
	for _, s := range missed {
		if s.unix < a.newest { // a second that ended since is not complete
			a.samples = append(a.samples, s)
		}
	}
	return a, err
}

// missed returns what is missing before the second until, in which there are so many resources.
func (r *reader) missed(ctx context.Context, until int64, resources int) ([]sample, error) {
	window, list := int64(0), every
	switch gap := until - r.last - 1; {
	case r.last == 0 && r.window == 0:
		r.window = keep(resources)
	case r.last > 0 && gap > few:
		r.past, r.window = every, min(gap+int64(len(every))+2, keep(resources))
	case r.last > 0 && gap > 0:
		window = gap + 2 // a second may end meanwhile
	}
	if window == 0 {
		for len(r.past) > 0 && r.untimed && timed(r.past[0]) {
			r.past = r.past[1:]
		}
		if len(r.past) == 0 {
			return nil, nil
		}
		window, list, r.past = r.window, r.past[:1], r.past[1:]
	}
	p, _, err := r.ask(ctx, r.page, window, list...)
	if statusOf(err) == http.StatusBadRequest && window > minute { // it keeps less, or sends less at a time
		r.window = minute
		p, _, err = r.ask(ctx, r.page, minute, list...)
	}
	if err != nil {
		return nil, err
	}
	return p.seconds()
}

// ask requests the last seconds of some metrics. Of a minute the endpoint may send fewer.
func (r *reader) ask(ctx context.Context, u *url.URL, window int64, list ...metric) (page, time.Time, error) {
	q := url.Values{}
	for _, m := range list {
		if !r.untimed || !timed(m) {
			q["metric"] = append(q["metric"], onPage[m].list()...)
		}
	}
	if window != minute {
		q.Set("window", fmt.Sprintf("%ds", window))
	}
	return r.endpoint.get(ctx, u, q)
}

// errNoSeconds ends the error of an endpoint without a per-second page.
var errNoSeconds = errors.New("there is no per-second page; pass host:port of a service that serves\n" + secondsPath + " (package exporter), or the URL of that page")

// find finds the per-second page, and returns its last second. Its error says what there is instead.
func (r *reader) find(ctx context.Context) (page, time.Time, error) {
	var all []error
	absent := false
	for _, u := range r.endpoint.pages() {
		r.untimed = false
		p, now, err := r.ask(ctx, u, 1, every...)
		if statusOf(err) == http.StatusBadRequest { // it does not know all of these metrics
			r.untimed = true
			p, now, err = r.ask(ctx, u, 1, every...)
		}
		switch {
		case err == nil && p.hasSeconds():
			r.page = u
			return p, now, nil
		case err == nil:
			err = fmt.Errorf("%s has metrics, but no seconds", clean(u.Redacted()))
			absent = true
		case statusOf(err) == 0:
			return nil, now, err // the other page would fail alike
		}
		all, absent = append(all, err), absent || statusOf(err) == http.StatusNotFound
	}
	if absent {
		all = append(all, errNoSeconds)
	}
	return nil, time.Time{}, errors.Join(all...)
}

// statusOf returns the status of the response that is the error, 0 if there was none.
func statusOf(err error) int {
	var s *statusError
	if errors.As(err, &s) {
		return s.status
	}
	return 0
}
