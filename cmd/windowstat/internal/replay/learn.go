package replay

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/windowstat/windowstat/collector/httpstat"
)

// makeNames prepares the names. Logs that can be read twice are read for their names first: which the service has answered with
// success, and which of these are called most. What can be read once earns its names on the way.
func (r *run) makeNames(ctx context.Context) error {
	if r.Names == nil {
		return nil
	}
	once := slices.ContainsFunc(r.sources, func(s *source) bool { return s.kept != nil })
	if once {
		return r.earnNames(r.MaxResources)
	}
	if err := r.earnNames(maxNames); err != nil {
		return err
	}
	r.size *= 2
	for _, s := range r.sources {
		r.learn(ctx, s)
	}
	r.earned.Freeze(r.MaxResources)
	r.settled = true
	return ctx.Err()
}

// earnNames makes names that must be earned, of which so many may be in use at a time.
func (r *run) earnNames(most int) (err error) {
	if r.Names == nil {
		return nil
	}
	o := *r.Names
	o.MaxNames, o.Now = most, func() time.Time { return time.Unix(r.latest.Load(), 0) }
	r.earned, err = httpstat.NewNames(o)
	return err
}

// at notes the time of a line.
func (r *run) at(t time.Time) {
	if at := t.Unix(); at > r.latest.Load() && at <= time.Now().Unix() {
		r.latest.Store(at)
	}
}

// learn reads the names of one log. What cannot be read shows when it is read again.
func (r *run) learn(ctx context.Context, s *source) {
	raw, free := make(chan block, 2), make(chan []byte, 4)
	go func() {
		defer close(raw)
		_ = s.read(ctx, raw, free, nil, &r.read)
	}()
	p := &lineParser{Parser: s.format.NewParser(r.Zone), names: r.newNames(), timed: r.Timed}
	for x := range raw {
		for line := range bytes.Lines(x.data) {
			if p.Parse(line, &p.rec) == nil && p.check() == nil {
				// At one time, and without a host: of what was there, the busiest names are kept.
				r.earned.Learn(p.names.request(&p.rec).plain, "", p.rec.Status)
			}
		}
		select {
		case free <- x.data:
		default:
		}
		if r.Progress != nil {
			r.Progress(r.read.Load(), r.size, 0)
		}
	}
}
