package replay

import (
	"bytes"
	"context"
	"time"

	"github.com/windowstat/windowstat/collector/httpstat"
)

// makeNames prepares the names. Logs are read for them first: which the service has answered with success, and which of these are
// called most; and for the parts of the logs that are in order.
func (r *run) makeNames(ctx context.Context) error {
	if err := r.earnNames(); err != nil || r.earned == nil {
		return err
	}
	r.size *= 2
	all := successes{}
	var parts []*source
	for _, s := range r.sources {
		parts = append(parts, r.learn(ctx, s, &all).split(s)...)
	}
	r.sources = parts
	r.sortSources()
	r.earned.Settle(all.calls, r.MaxResources)
	r.settled = true
	return ctx.Err()
}

// earnNames makes names that must be earned.
func (r *run) earnNames() (err error) {
	if r.Names == nil {
		return nil
	}
	o := *r.Names
	o.MaxNames, o.Now = r.MaxResources, func() time.Time { return time.Unix(r.latest, 0) }
	r.earned, err = httpstat.NewNames(o)
	return err
}

// learn reads the names of one log, and its order. What cannot be read shows when it is read again.
func (r *run) learn(ctx context.Context, s *source, all *successes) *order {
	in := &order{tolerance: int64(r.Tolerance)}
	raw, free := make(chan block, 2), make(chan []byte, 4)
	go func() {
		defer close(raw)
		_ = s.read(ctx, raw, free, &r.read)
	}()
	p := &lineParser{Parser: s.format.NewParser(r.Zone), names: r.newNames(), timed: r.Timed}
	for x := range raw {
		in.skip(x.long)
		for line := range bytes.Lines(x.data) {
			if p.Parse(line, &p.rec) != nil || p.check() != nil {
				in.skip(1)
				continue
			}
			in.add(nanosOf(p.rec.Time))
			if httpstat.Success(p.rec.Status) {
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
	return in
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
