package top

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// reader polls an endpoint for new seconds. One goroutine at a time may use it.
type reader struct {
	endpoint *Endpoint
	past     []metric          // those whose past is still to be read, one each time
	window   int64             // how many seconds of it; 0 if not known yet
	page     *url.URL          // nil until it is found
	names    [metrics][]string // of each metric, those that the page knows
	last     int64             // the newest second read
	tells    bool              // that second can tell whether the process is another one: not everything was idle in it
	known    string            // a resource that was not idle in it, inbound if there is none
	fresh    bool              // the connection is new since then
}

// answer is the result of one poll.
type answer struct {
	samples   []sample
	newest    int64
	restarted bool     // another process than the last one answered
	page      *url.URL // where the seconds are
	err       error
}

// read requests the seconds since the last time, or at first all that are kept.
func (r *reader) read(ctx context.Context) answer {
	a, err := r.try(ctx)
	if a.err, a.page = err, r.page; err != nil {
		if statusOf(err) != 0 {
			r.page = nil // it may have moved
		}
		return a
	}
	if len(a.samples) > 0 {
		r.last, r.tells = a.newest, false
	}
	for i := range a.samples {
		if s := &a.samples[i]; s.unix == a.newest && s.metric == inFlight {
			if r.tells, r.known = true, s.resource; r.known != inbound {
				break
			}
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
	p, at, err := r.ask(ctx, 1, every...)
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
	until := newest(a.samples)
	if until == 0 { // nothing was counted
		a.newest = at.Unix() - 1
		return a, nil
	}
	a.newest = until
	if r.tells && r.fresh {
		a.restarted = r.restarted(ctx, until)
	}
	r.fresh = false
	missed, err := r.missed(ctx, until, len(a.samples)/int(metrics))
	for _, s := range missed {
		if s.unix < until { // a second that ended since is not complete
			a.samples = append(a.samples, s)
		}
	}
	if a.restarted {
		r.page = nil // another version may know other metrics
	}
	return a, err
}

// few is how many missed seconds are requested at once. After more, they are requested one metric at a time, so that no
// response is very large and the first comes soon.
const few = 5

// missed returns what is missing before the second until, of which there are so many rows.
func (r *reader) missed(ctx context.Context, until int64, rows int) ([]sample, error) {
	window, list := int64(0), every
	switch gap := until - r.last - 1; {
	case r.last == 0 && r.window == 0:
		r.window = keep(rows)
	case r.last > 0 && gap > few:
		r.past, r.window = every, min(gap+int64(len(every))+2, keep(rows))
	case r.last > 0 && gap > 0:
		window = gap + 2 // a second may end meanwhile
	}
	if window == 0 {
		for len(r.past) > 0 && len(r.names[r.past[0]]) == 0 {
			r.past = r.past[1:]
		}
		if len(r.past) == 0 {
			return nil, nil
		}
		window, list, r.past = r.window, r.past[:1], r.past[1:]
	}
	p, _, err := r.ask(ctx, window, list...)
	if statusOf(err) == http.StatusBadRequest && window > minute { // it keeps less, or sends less at a time
		r.window = minute
		p, _, err = r.ask(ctx, 0, list...)
	}
	if err != nil {
		return nil, err
	}
	return p.seconds()
}

// get requests a page, and returns the time of the endpoint.
func (r *reader) get(ctx context.Context, u *url.URL, q url.Values) (page, time.Time, error) {
	p, a, err := r.endpoint.get(ctx, u, q)
	r.fresh = r.fresh || a.fresh
	return p, a.at, err
}

// ask requests the last seconds of some metrics. Of a minute or 0 the endpoint may send fewer.
func (r *reader) ask(ctx context.Context, window int64, list ...metric) (page, time.Time, error) {
	q := url.Values{}
	for _, m := range list {
		q["metric"] = append(q["metric"], r.names[m]...)
	}
	if window > 0 && window != minute {
		q.Set("window", fmt.Sprintf("%ds", window))
	}
	return r.get(ctx, r.page, q)
}

// restarted reports whether another process counted the last second read: seconds from the log lack what was in flight. It
// reports false if it cannot tell.
func (r *reader) restarted(ctx context.Context, until int64) bool {
	window := time.Duration(until-r.last+2) * time.Second
	q := url.Values{"metric": r.names[inFlight], "window": {window.String()}}
	if r.known != inbound {
		q.Set("resource", r.known)
	}
	p, _, err := r.get(ctx, r.page, q)
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
