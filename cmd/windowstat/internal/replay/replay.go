// Package replay replays the calls of access logs in their own time, so they are counted like the calls of an
// instrumented service.
//
//	log      a line is read (file, tail), and parsed (log)
//	order    lines of all logs are merged in the order of their times, and named (names)
//	timeline a call is added to the second of its start; when no earlier line is expected, the second is replayed
//	         (package timeline): its calls start, and end at their times
//	counter  calls become rows of a summary and a metric log (rows), or calls of a Collector that is served
//	report   every line is counted by its result
//
// Lines are out of order, because servers write them when calls end. The replay sorts them, unless a line is later than
// the tolerance. A call passes in the second of its start and completes in the second of its end. The format says
// whether the time of a line is the start or the end. Times of whole seconds are spread over their seconds, so that
// durations below a second count: the log does not say at which fraction of a second such a call started.
//
// [Run] replays logs that end, a [Follower] logs that grow. Both read each line once, and merge the lines of all logs:
// the next line always comes from the log that is furthest behind. A line far ahead of the lines around it is an
// outlier, and is not counted. If a log goes back by more than the tolerance, because several logs were concatenated in
// the wrong order or a clock was set back, its lines are late. They are not counted, but reported for each log.
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

// Follower replays logs in one timeline: logs that grow, if it was created with [NewFollower], or logs that end, for
// [Run]. The clock of its Collector is the wall clock minus the tolerance and a second.
//
// One goroutine reads and counts. It holds mu while it moves lines, but not while it reads, so Report and the metrics,
// which other goroutines call, never wait for a disk or a pipe.
type Follower struct {
	Clock *timeline.Clock // clock of the Collector; nil if the logs end
	Options

	mu       sync.Mutex // guards the fields below; held while lines are moved
	counts   Report
	behind   []*Behind
	logs     []*log // logs that end are sorted by their first lines
	names    *names
	timeline *timeline.Timeline
	spread   spread
	present  int64 // current time plus the tolerance, Unix nanoseconds
	after    int64 // Unix time of the last second that the previous process counted, or 0

	openFiles openFiles // of logs that grow
	patterns  []string  // of files that are followed when they appear
	matched   time.Time // last search for matching files

	done <-chan struct{} // stops the reading of logs that end
	errs []error         // errors of logs that could not be read to their ends
}

// newFollower returns a Follower without logs. Its timeline starts with the first line.
func newFollower(o Options) (*Follower, error) {
	names, err := newNames(&o)
	return &Follower{Options: o, names: names, timeline: timeline.New(int64(o.Tolerance/time.Second) + 1)}, err
}

// Run replays the logs and calls f for each second with calls, in order. If f fails or a file cannot be read to its
// end, Run returns the error with a Report of the lines that were read.
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
	// Each log is opened when the others have reached its first line.
	slices.SortStableFunc(r.logs, func(a, b *log) int { return cmp.Compare(a.first, b.first) })
	r.timeline.Counter = &rows{names: r.names, each: f}
	err = r.play(ctx)
	return r.Report(), errors.Join(append(r.errs, err)...)
}

// play moves lines until ctx ends, and returns the error of ctx, or until all logs have ended.
func (r *Follower) play(ctx context.Context) error {
	for ctx.Err() == nil {
		idle, err := r.round()
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil: // the logs may have more lines
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

// round moves lines until it has read some more. Before that, it polls all logs that were idle. It returns idle if all
// lines that were written before the call were moved; then it ends the seconds that are older than the tolerance.
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
		if err != nil && r.Clock == nil { // continue with the other logs
			r.errs, err = append(r.errs, err), nil
		}
		if more || err != nil {
			return false, err
		}
	}
	// If logs end, all of them have ended here.
	if r.Clock == nil {
		return true, nil
	}
	// A second ends when no more line of it can arrive: all logs were read up to a time that is later by the tolerance,
	// plus the time that a line may take into its log.
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

// await calls open and waits for it until ctx ends. Opening a named pipe, and reading its first lines, takes until
// another process writes to it. The end of the process closes a pipe that is opened later.
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
