// Package replay replays the calls of access logs in their own time, so they are counted like the calls of an
// instrumented service. A line takes this path:
//
//	file, tail   read blocks of whole lines from a log that ends, or from the files of a log that grows
//	log          parses the lines of a block into items, and counts lines that are no calls
//	order        merges the items of all logs in the order of their times
//	names        names the resource of each item, and decides whether a request has earned its name
//	timeline     holds calls until their second can be replayed (package timeline)
//	rows         counts calls into a summary and a metric log, for logs that end
//	Collected    counts calls in a Collector that is served, for logs that grow (package timeline)
//	report       counts every line by its outcome
//
// Servers write a line when the call ends, so lines are out of order. The replay sorts them, and accepts lines that are
// late by at most the tolerance. A call passes in the second of its start and completes in the second of its end. The
// format determines whether the time of a line is the start or the end of the call:
//
//	end of the call     counted                          with a tolerance of 5 s, the second is replayed
//	10:00:04, took 3 s  10:00:01  1 passes               when a line of 10:00:07 or later is read
//	10:00:02, took 0 s  10:00:02  1 passes, 1 completes  when a line of 10:00:08 or later is read
//	                    10:00:04  1 completes            when a line of 10:00:10 or later is read
//
// Times of whole seconds are spread over their seconds, because the log does not record the fraction at which a call
// started. Without the spread, all calls of a second would start together, and durations below a second would not
// count.
//
// [Run] replays logs that end. A [Follower] replays logs that grow. Both read each line once and merge the lines of all
// logs: the next line comes from the log with the earliest time. A line far ahead of its neighbors is an outlier and is
// not counted. If a log goes back by more than the tolerance, its lines are late: several logs were concatenated in the
// wrong order, or a clock was set back. Late lines are not counted. The report lists them for each log.
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

// Follower replays logs in one timeline: logs that grow if [NewFollower] created it, or logs that end for [Run]. The
// clock of its Collector is the wall clock minus the tolerance and a second.
//
// One goroutine reads and counts. It holds mu while it moves lines from the logs to the timeline, but not while it
// reads. Other goroutines call Report and read the metrics, so they never wait for a disk or a pipe.
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

// newFollower returns a Follower without logs. Its timeline begins with the first line.
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

// play moves lines until ctx ends or all logs have ended. If ctx ends, it returns the error of ctx.
func (r *Follower) play(ctx context.Context) error {
	for ctx.Err() == nil {
		idle, err := r.round()
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil: // canceled: the logs may have more lines
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

// round moves lines until it has read one more block. It reports idle if it moved all lines that were written before
// the call. In that case it also ends the seconds that are older than the tolerance. A log whose upTo is not zero has
// no new lines in this round; round polls each log at most once after that.
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
	// Logs that end: advance returns nil only after the end of all of them.
	if r.Clock == nil {
		return true, nil
	}
	// A second ends when no line of it can arrive later. This is the case when all logs were read up to the end of the
	// second, plus the tolerance, plus the time that a line may take from the server into its log.
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

// await calls open and waits for its result until ctx ends. Opening a named pipe and reading its first lines blocks
// until another process writes to the pipe. If ctx ends first, the goroutine continues; the end of the process closes
// its pipe.
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

// notThere reports whether err means that a file does not exist.
func notThere(err error) bool { return errors.Is(err, fs.ErrNotExist) }
