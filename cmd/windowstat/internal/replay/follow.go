package replay

import (
	"context"
	"errors"
	"io"
	"math"
	"os"
	"sync"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// Follower replays a log as it grows. The time of its Collector is the wall clock less the tolerance and a second. It must
// be made with [NewFollower].
type Follower struct {
	Clock *Clock // for the Collector's options
	Timed bool   // the log says how long calls take

	mu     sync.Mutex // guards run but for its Options
	run    *run
	source *source
	tail   *tail // nil if the log is a stream
}

// ingestDelay is how long a line may take from the server into the log without being late.
const ingestDelay = time.Second

// NewFollower opens the log, the only one of the options' files, which may be Stdin. Without a format NewFollower waits
// until the log has a line, if it is empty, and so is what was rotated away. The Follower skips what the log has now, or, if after is not the zero Time, what is not after that second: so a
// process goes on where the one before it ended. It reads all that is written later, even to a file that does not exist
// yet.
func NewFollower(o Options, after time.Time) (*Follower, error) {
	f := &Follower{Clock: &Clock{}, run: newRun(o)}
	if err := errors.Join(f.run.earnNames(), f.open(o.Files[0], after)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	f.Timed = f.source.timed || f.source.first == 0 && f.source.format.HasDuration()
	f.run.Timed = f.Timed
	begin := time.Now().Add(-o.Tolerance - ingestDelay).Unix()
	if !after.IsZero() {
		f.run.after = after.Unix()
		begin = f.run.after + 1
	}
	f.run.window.from, f.run.window.to = begin, begin
	f.Clock.set(begin * nanos)
	return f, nil
}

// open decides where reading begins, once and before anything else looks at the log: what appears between this and Run is
// new.
func (f *Follower) open(name string, after time.Time) (err error) {
	if name != "-" {
		if f.tail, err = newTail(name, after); err != nil {
			return err
		}
		if watch := f.run.Watch; watch != nil {
			if changed, end, err := watch(name); err == nil {
				f.tail.changed, f.tail.unwatch = changed, end
			}
		}
	}
	o := &f.run.Options
	s, err := inspect(name, o.Stdin, o.Format, o.Zone, &f.run.read, true)
	switch {
	case errors.Is(err, os.ErrNotExist) && o.Format != nil:
		s = &source{name: name, format: o.Format}
	case err != nil:
		return err
	case s.packed && s.kept == nil:
		return errors.New(name + " is packed; a log that grows is not")
	}
	if s.format == nil {
		if s.format = o.Format; s.format == nil {
			if s, err = f.firstLine(name); err != nil {
				return err
			}
		}
	}
	f.source = s
	if s.unread != "" {
		f.run.Unread = []Unread{{name, s.format.String(), s.unread}}
	}
	return nil
}

// firstLine finds the format of a log that is empty: that of the one that was rotated away, or of the first line that comes.
func (f *Follower) firstLine(name string) (s *source, err error) {
	o := &f.run.Options
	for _, old := range rotations(name, time.Time{}) {
		if s, err = inspect(old, nil, nil, o.Zone, &f.run.read, false); err == nil && s.format != nil {
			s.name = name
			return s, nil
		}
	}
	for {
		time.Sleep(poll)
		if s, err = inspect(name, nil, nil, o.Zone, &f.run.read, true); err != nil && !errors.Is(err, os.ErrNotExist) || err == nil && s.format != nil {
			return s, err
		}
	}
}

// Names are those that are earned, nil without [Options].Names.
func (f *Follower) Names() *httpstat.Names { return f.run.earned }

// Close closes the log of a Follower that will not run; Run closes it itself.
func (f *Follower) Close() error {
	if f.tail == nil {
		return nil
	}
	return f.tail.close()
}

// Run replays into a Collector that has the Clock, until ctx ends or Stdin does, and calls ended after each second. It
// drops the calls that it still holds when ctx ends, because earlier lines may come; the next process reads them again.
func (f *Follower) Run(ctx context.Context, c *collector.Collector, ended func()) error {
	r := f.run
	r.player = newPlayer(c, f.Clock, &r.names, r.window.from)
	r.player.inbound = true
	r.player.done = func(time.Time, []*collector.Resource, int64) error { ended(); return nil }
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	blocks, failed := f.blocks(ctx)
	parser := &lineParser{Parser: f.source.format.NewParser(r.Zone), file: f.source.name, names: r.newNames(), timed: f.Timed, to: math.MaxInt64}
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
			if err := f.until(x.upTo.Add(-r.Tolerance - ingestDelay).Unix()); err != nil {
				return err
			}
		}
	}
}

// take puts the lines of a block into the window.
func (f *Follower) take(p *lineParser, x block) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var b batch
	p.parse(x, &b)
	if n := len(b.items); n > 0 && b.items[n-1].stamp < f.run.after*nanos {
		b.lines, b.malformed, b.examples = int64(n), 0, nil // the previous process has reported them
	}
	f.run.batch(f.source, &b)
	f.run.Cut += x.cut
	if x.truncated {
		f.run.Truncated++
	}
	for i := range b.items {
		if b.items[i].stamp > f.run.present {
			f.run.Future++
		} else if err := f.run.take(f.source, &b.items[i]); err != nil {
			return err
		}
	}
	return nil
}

// until ends the seconds before the given one.
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

// finish plays all that is held.
func (f *Follower) finish() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.run.finish()
}

// blocks reads the log in a goroutine. The second channel has the error once the first is closed.
func (f *Follower) blocks(ctx context.Context) (<-chan block, <-chan error) {
	to, failed := make(chan block), make(chan error, 1)
	go func() {
		defer close(to)
		failed <- f.read(ctx, to)
	}()
	return to, failed
}

func (f *Follower) read(ctx context.Context, to chan<- block) (err error) {
	defer func() { err = errors.Join(err, f.Close()) }()
	var next func(context.Context) (block, error)
	if in := f.source.kept; in != nil {
		next = newStream(in).next
	} else {
		next = f.tail.next
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

// Report counts the lines so far.
func (f *Follower) Report() Report {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.run.Report
}
