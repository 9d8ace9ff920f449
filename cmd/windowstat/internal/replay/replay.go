// Package replay repeats the calls of access logs in their own time, so that they are counted like those of an
// instrumented service.
//
// The way of a line: it is read from a log (file, tail), parsed (log), taken in the order of times among the lines of all logs
// (order), named (names), and put into the second in which its call began (order, package timeline). When no earlier line is expected, a
// second is played: its calls begin, and end when their time has come. They are counted as rows for a summary and a metric
// log (rows), or by a Collector that is served. What becomes of each line is reported (report).
//
// Lines are out of order, since servers write them when calls end. The replay sorts them, unless one is later than the
// tolerance. A call passes in the second in which it began and completes in the one in which it ended; the time of its
// line is one or the other, as the format says. Times of whole seconds are spread over their seconds, so that durations
// below a second mean something: the log does not know where in its second such a call began.
//
// [Run] replays logs that end, a [Follower] logs that grow. Both read each line once, and take the lines of all logs in the order
// of their times: the next line is always that of the log that is furthest behind. A line far ahead of those around it is an
// outlier, and not counted. A log that goes back by more than the tolerance, as several put together in the wrong order do, or a
// clock that is set back, has late lines, which are not counted, but reported for each log.
package replay

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/timeline"
)

// Follower is a replay in one timeline: of logs as they grow, made with [NewFollower], or of logs that end, as [Run] has it. The time of
// its Collector is the wall clock less the tolerance and a second.
//
// One goroutine reads and counts. It holds the lock while it takes lines, and never while it reads, so that a Report and the metrics,
// which other goroutines ask for, wait for no disk and no pipe.
type Follower struct {
	Clock *timeline.Clock // for the Collector's options; nil if the logs end
	Options

	mu       sync.Mutex // guards what follows; it is held while lines are taken
	counts   Report
	behind   []*Behind
	logs     []*log // those that end are in the order of their first lines
	names    *names
	timeline *timeline.Timeline
	spread   spread
	present  int64 // with the tolerance, Unix nanoseconds
	after    int64 // Unix time of the last second that the previous process counted, 0 if there was none

	openFiles openFiles // of logs that grow
	patterns  []string  // of files that are followed when they appear
	matched   time.Time // when they were last looked for

	done <-chan struct{} // ends the reading of logs that end
	errs []error         // of logs that could not be read to their ends
}

// newFollower makes a Follower without logs, whose timeline begins with the first line.
func newFollower(o Options) (*Follower, error) {
	names, err := newNames(&o)
	return &Follower{Options: o, names: names, timeline: timeline.New(int64(o.Tolerance/time.Second) + 1)}, err
}

// Run replays the logs and calls f for each second with calls, in order. The Report counts what was read even if there is an
// error: f's, or that of a file that could not be read to its end.
func Run(ctx context.Context, o Options, f func(*Second) error) (*Report, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, err := await(ctx, func() (*Follower, error) {
		r, err := newFollower(o)
		if err == nil {
			r.done = ctx.Done()
			err = r.openLogs(time.Time{})
		}
		return r, err
	})
	if err != nil {
		return new(Report), err
	}
	// Each is opened when the others have come to its first line.
	slices.SortStableFunc(r.logs, func(a, b *log) int { return cmp.Compare(a.first, b.first) })
	r.timeline.Counter = &rows{names: r.names, each: f}
	err = r.play(ctx)
	return r.Report(), errors.Join(append(r.errs, err)...)
}

// play takes lines until ctx ends, whose error it returns then, or all logs have ended.
func (r *Follower) play(ctx context.Context) error {
	for ctx.Err() == nil {
		idle, err := r.round()
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil: // there may be more
		case len(r.logs)+len(r.patterns) == 0:
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.timeline.Until(math.MaxInt64)
		case idle:
			select {
			case <-ctx.Done():
			case <-time.After(poll):
			}
		}
	}
	return ctx.Err()
}

// round takes lines until it has read some, before which it looks at all logs that were idle. It is idle if all that was written
// before it is taken; then seconds that are over by the tolerance end.
func (r *Follower) round() (idle bool, err error) {
	now := time.Now()
	r.match(now)
	for _, l := range r.logs {
		l.upTo = time.Time{}
	}
	for {
		r.mu.Lock()
		l, err := r.advance()
		r.mu.Unlock()
		if err != nil {
			return false, err
		}
		if l == nil {
			break
		}
		more, err := r.fill(l)
		if err != nil && r.Clock == nil { // the others are read all the same
			r.errs, err = append(r.errs, err), nil
		}
		if more || err != nil {
			return false, err
		}
	}
	// Logs that end are not idle: all have ended.
	if r.Clock == nil {
		return true, nil
	}
	// A second is over when no line of it can come: all logs have been read up to a time that is later by the tolerance, and by what
	// a line may take into the log.
	upTo := now
	for _, l := range r.logs {
		if l.upTo.Before(upTo) {
			upTo = l.upTo
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	over := upTo.Add(-r.Tolerance - ingestDelay).Unix()
	if err := r.timeline.Until(over); err != nil {
		return true, err
	}
	r.Clock.Set(over * nanos)
	return true, nil
}

// await calls open and waits for it until ctx ends: opening a named pipe takes until somebody writes to it, and reading its
// first lines, too. What is opened later is left to the end of the process.
func await(ctx context.Context, open func() (*Follower, error)) (*Follower, error) {
	var f *Follower
	var err error
	opened := make(chan struct{})
	go func() {
		defer close(opened)
		f, err = open()
	}()
	select {
	case <-opened:
		return f, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// notThere reports whether an error says that a file does not exist.
func notThere(err error) bool { return errors.Is(err, fs.ErrNotExist) }
