package top

import (
	"context"
	"fmt"
	"net/url"
	"time"
)

// reader polls an endpoint for new seconds. One goroutine at a time may use it.
type reader struct {
	endpoint *Endpoint
	minute   []metric          // those whose last minute is still to be read, one each time
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
	restarted bool // another process than the last one answered
	err       error
}

// read requests the seconds since the last time, or at first the last minute.
func (r *reader) read(ctx context.Context) answer {
	a, err := r.try(ctx)
	if a.err = err; err != nil {
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
	if p.kind() != secondsPage {
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
	missed, err := r.missed(ctx, until)
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

// few is how many missed seconds are requested at once. After more, the whole minute is requested, one metric at a time, so
// that no response is very large and the first comes soon.
const few = 5

// missed returns what is missing before the second until.
func (r *reader) missed(ctx context.Context, until int64) ([]sample, error) {
	window, list := int64(minute), every
	if gap := until - r.last - 1; r.last > 0 && gap > 0 {
		if window = gap + 2; gap > few { // a second may end meanwhile
			r.minute = every
		}
	}
	if window > few+2 {
		for len(r.minute) > 0 && len(r.names[r.minute[0]]) == 0 {
			r.minute = r.minute[1:]
		}
		if len(r.minute) == 0 {
			return nil, nil
		}
		window, list, r.minute = minute, r.minute[:1], r.minute[1:]
	}
	p, _, err := r.ask(ctx, window, list...)
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

// ask requests the last seconds of some metrics. For a whole minute the endpoint may send fewer.
func (r *reader) ask(ctx context.Context, window int64, list ...metric) (page, time.Time, error) {
	q := url.Values{}
	for _, m := range list {
		q["metric"] = append(q["metric"], r.names[m]...)
	}
	if window < minute {
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
