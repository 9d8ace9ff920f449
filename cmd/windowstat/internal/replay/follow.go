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
// tolerance and a second. It must be made with [NewFollower].
type Follower struct {
	Clock *Clock // for the Collector's options
	Timed bool   // the log says how long calls take

	mu     sync.Mutex // guards run but for its Options
	run    *run
	source *source
}

// grace is how long a line may take on its way from the server into the log, and still be in time.
const grace = time.Second

// NewFollower looks at the log, the only one of the options' files, which may be Stdin. The log must have lines if no
// format is given. It will be read from its end on, or, if after is not the zero Time, from its beginning and what is
// not after that second left out: so a process goes on where the one before it ended.
func NewFollower(o Options, after time.Time) (*Follower, error) {
	name := o.Files[0]
	f := &Follower{Clock: &Clock{}, run: newRun(o)}
	s, err := look(name, o.Stdin, o.Format, o.Zone, &f.run.read, true)
	switch {
	case errors.Is(err, os.ErrNotExist) && o.Format != nil:
		s = &source{name: name, format: o.Format}
	case err != nil:
		return nil, err
	case s.packed && s.kept == nil:
		return nil, errors.New(name + " is packed; a log that grows is not")
	}
	if s.format == nil {
		if s.format = o.Format; s.format == nil {
			return nil, errors.New(name + " has no lines to guess its format from; say what it is")
		}
	}
	f.source = s
	f.Timed = s.timed || s.first == 0 && s.format.HasDuration()
	f.run.Timed = f.Timed
	begin := time.Now().Add(-o.Tolerance - grace).Unix()
	if !after.IsZero() {
		f.run.after = after.Unix()
		begin = f.run.after + 1
	}
	f.run.window.from, f.run.window.to = begin, begin
	f.Clock.set(begin * nanos)
	return f, nil
}

// Run replays into a Collector that has the Clock, until ctx ends or Stdin does, and calls ended after each second.
// What it holds when ctx ends, because earlier lines may still come, is left for the next process.
func (f *Follower) Run(ctx context.Context, c *collector.Collector, ended func()) error {
	r := f.run
	r.player = newPlayer(c, f.Clock, &r.names, r.window.from)
	r.player.inbound = true
	r.player.done = func(time.Time, []*collector.Resource, int64) error { ended(); return nil }
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	blocks, failed := f.blocks(ctx)
	parser := &lineParser{Parser: f.source.format.NewParser(r.Zone), file: f.source.name, names: newNames(r.Depth), timed: f.Timed}
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
			if x.upTo.IsZero() {
				continue
			}
			if err := f.until(x.upTo.Add(-r.Tolerance - grace).Unix()); err != nil {
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
	if n := len(b.items); n > 0 && b.items[n-1].stamp < f.run.after*nanos {
		b.lines, b.malformed, b.examples = int64(n), 0, nil // the process before this one has told of them
	}
	f.run.batch(f.source, &b)
	for i := range b.items {
		if b.items[i].stamp > f.run.present {
			f.run.Future++
		} else if err := f.run.take(f.source, &b.items[i]); err != nil {
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

// finish is that of the run.
func (f *Follower) finish() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.run.finish()
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
	var next func(context.Context) (block, error)
	if in := f.source.kept; in != nil {
		next = newStream(in).next
	} else {
		t, failed := newTail(f.source.name, f.run.after == 0)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, t.close()) }()
		next = t.next
	}
	for {
		x, err := next(ctx)
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
