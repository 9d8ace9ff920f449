package replay

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// Follower replays a log that grows, as it grows: the time of its Collector is that of the wall clock, less the
// tolerance. It must be made with [NewFollower].
type Follower struct {
	Clock *Clock // for the Collector's options
	Timed bool   // the log says how long calls take

	mu     sync.Mutex // guards run but for its Options
	run    run
	source *source
	from   time.Time // zero for the end of the log
}

// NewFollower looks at the log, the only one of the options' files, which may be Stdin. The log must have lines if no
// format is given. It will be read from its end on, or, if after is not the zero Time, from its beginning and what is
// not after that second left out: so a process goes on where the one before it ended.
func NewFollower(o Options, after time.Time) (*Follower, error) {
	name := o.Files[0]
	f := &Follower{Clock: &Clock{}, from: after}
	f.run = run{Options: o, ids: map[string]int32{}, window: newWindow(int64(o.Tolerance / time.Second))}
	s, _, err := look(name, o.Stdin, o.Format, o.Zone, &f.run.read, 1)
	switch {
	case errors.Is(err, os.ErrNotExist) && o.Format != nil:
		s = &source{name: name, format: o.Format}
	case err != nil:
		return nil, err
	}
	if s.format == nil {
		if s.format = o.Format; s.format == nil {
			return nil, errors.New(name + " has no lines to guess its format from; say what it is")
		}
	}
	f.source = s
	f.Timed = s.timed || s.first == 0 && s.format.HasDuration()
	f.run.Timed = f.Timed
	begin := time.Now().Add(-o.Tolerance).Unix()
	if !after.IsZero() {
		begin = after.Unix() + 1
	}
	f.run.window.from, f.run.window.to = begin, begin
	f.Clock.set(begin * nanos)
	return f, nil
}

// Run replays into a Collector that has the Clock, until ctx ends or Stdin does, and calls ended after each second.
// What it holds when ctx ends, because earlier lines may still come, is left for the next process.
func (f *Follower) Run(ctx context.Context, c *collector.Collector, ended func()) error {
	r := &f.run
	r.player = &player{
		stats: c, clock: f.Clock, names: &r.names, open: r.window.from, sealed: r.window.from,
		flying: map[int32]int64{}, marks: map[*collector.Resource]bool{},
		done: func(time.Time, []*collector.Resource, int64) error { ended(); return nil },
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	blocks, failed := f.blocks(ctx)
	parser := &lineParser{Parser: f.source.format.NewParser(r.Zone), file: f.source.name, names: newNames(r.Depth), timed: f.Timed}
	tick := time.NewTicker(poll)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case x, ok := <-blocks:
			if !ok {
				if err := <-failed; err != nil || ctx.Err() != nil {
					return err
				}
				return f.finish()
			}
			if err := f.take(parser, x); err != nil {
				return err
			}
		case now := <-tick.C:
			if err := f.until(now.Add(-r.Tolerance).Unix()); err != nil {
				return err
			}
		}
	}
}

// take puts the lines of a block into their places.
func (f *Follower) take(p *lineParser, x block) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var b batch
	p.parse(x, &b)
	f.run.batch(f.source, &b)
	for i := range b.items {
		if it := &b.items[i]; !f.from.IsZero() && it.stamp < (f.from.Unix()+1)*nanos {
			f.run.Lines--
		} else if err := f.run.take(f.source, it); err != nil {
			return err
		}
	}
	return nil
}

// until ends the seconds before this one.
func (f *Follower) until(second int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if second <= f.run.window.from {
		return nil
	}
	if err := f.run.window.end(second, f.run.player.second); err != nil {
		return err
	}
	if err := f.run.player.idle(second); err != nil {
		return err
	}
	f.Clock.set(second * nanos)
	return nil
}

// finish ends all seconds, when there will be no more lines.
func (f *Follower) finish() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.run.window.end(f.run.window.to, f.run.player.second); err != nil {
		return err
	}
	return f.run.player.finish()
}

// blocks reads the log in the background. When its channel is closed, the other has the error.
func (f *Follower) blocks(ctx context.Context) (<-chan block, <-chan error) {
	to, failed := make(chan block), make(chan error, 1)
	go func() {
		defer close(to)
		failed <- f.read(ctx, to)
	}()
	return to, failed
}

func (f *Follower) read(ctx context.Context, to chan<- block) (err error) {
	next := func() (block, error) { return block{}, io.EOF }
	if in := f.source.kept; in != nil {
		all := blocks{r: in}
		next = func() (block, error) { return all.next(nil) }
	} else {
		t, failed := newTail(f.source.name, f.from.IsZero())
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, t.close()) }()
		next = func() (block, error) { return t.next(ctx) }
	}
	for {
		x, err := next()
		if errors.Is(err, io.EOF) || ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		select {
		case to <- x:
		case <-ctx.Done():
			return nil
		}
	}
}

// Report is what became of the lines so far.
func (f *Follower) Report() Report {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.run.Report
}
