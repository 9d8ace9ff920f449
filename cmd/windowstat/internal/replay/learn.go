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
	if err := r.earnNames(); err != nil || r.earned == nil {
		return err
	}
	if slices.ContainsFunc(r.sources, func(s *source) bool { return s.kept != nil }) {
		return nil
	}
	r.size *= 2
	all := successes{}
	for _, s := range r.sources {
		r.learn(ctx, s, &all)
	}
	r.earned.Settle(all.calls, r.MaxResources)
	r.settled = true
	return ctx.Err()
}

// earnNames makes names that must be earned, by the time of the log.
func (r *run) earnNames() (err error) {
	if r.Names == nil {
		return nil
	}
	o := *r.Names
	o.MaxNames, o.Now = r.MaxResources, func() time.Time { return time.Unix(r.latest.Load(), 0) }
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
func (r *run) learn(ctx context.Context, s *source, all *successes) {
	raw, free := make(chan block, 2), make(chan []byte, 4)
	go func() {
		defer close(raw)
		_ = s.read(ctx, raw, free, nil, &r.read)
	}()
	p := &lineParser{Parser: s.format.NewParser(r.Zone), names: r.newNames(), timed: r.Timed}
	for x := range raw {
		for line := range bytes.Lines(x.data) {
			if p.Parse(line, &p.rec) == nil && httpstat.Success(p.rec.Status) && p.check() == nil {
				all.add(p.names.request(&p.rec).plain)
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

// successes are the calls answered with success, by plain name: of maxNames at most. When there are more, those that were
// called least are forgotten, which are the made-up ones of a service that answers anything with success.
type successes struct {
	calls map[string]int64
	floor int64 // names with no more calls are forgotten
}

func (s *successes) add(plain string) {
	if s.calls == nil {
		s.calls = map[string]int64{}
	}
	s.calls[plain]++
	for len(s.calls) > maxNames {
		s.floor++
		for name, n := range s.calls {
			if n <= s.floor {
				delete(s.calls, name)
			}
		}
	}
}
