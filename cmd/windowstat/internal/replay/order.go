package replay

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/timeline"
	"github.com/windowstat/windowstat/collector"
)

// advance moves lines into the timeline, always from the log that is furthest behind, until a log must be read first.
// It returns that log, or nil if all logs have ended or have no lines now.
//
// The position of a log is its latest time so far, not the time of its next line. Otherwise a line out of order within
// its log would look as if the log was behind the others. Each log is therefore in order by itself, up to the
// tolerance, and all logs share one timeline.
func (r *Follower) advance() (*log, error) {
	for {
		var first *log
		for _, l := range r.logs {
			// A log that ends is opened when the other logs have reached its first line. A year of rotated files then
			// has few files open at a time, and names are earned in the order of time. A pipe is open already.
			if r.Clock == nil && l.parser == nil && !l.ended {
				if first == nil || l.first <= first.latest {
					return l, nil
				}
				break // the others begin later
			}
			if !l.ready && !r.settle(l) {
				return l, nil
			}
			if l.ready && (first == nil || l.latest < first.latest) {
				first = l
			}
		}
		if first == nil {
			r.logs = slices.DeleteFunc(r.logs, func(l *log) bool { return l.ended })
			return nil, nil
		}
		it := &first.items[first.next]
		first.next, first.ready = first.next+1, false
		if err := r.take(first, it); err != nil {
			return nil, err
		}
	}
}

// witnesses is the number of following lines that decide whether a line is an outlier.
const witnesses = 10

// settle skips lines from the future and outliers, until the next line of a log can be taken. An outlier is ahead of
// the lines before it by more than the tolerance, and most of the lines after it are not. settle returns false if more
// lines must be read first.
func (r *Follower) settle(l *log) bool {
	tolerance := int64(r.Tolerance)
	for ; l.next < len(l.items); l.next++ {
		at := l.items[l.next].stamp
		switch {
		case at > r.present:
			r.counts.Future++
			continue
		case at > l.latest+tolerance:
			// The following lines may not be read yet.
			behind := l.items[l.next+1:]
			if len(behind) < witnesses && !l.ended && l.upTo.IsZero() {
				return false
			}
			behind = behind[:min(len(behind), witnesses)]
			earlier := 0
			for i := range behind {
				if behind[i].stamp < at-tolerance {
					earlier++
				}
			}
			if 2*earlier > len(behind) {
				r.counts.Outliers++
				continue
			}
		}
		l.latest, l.ready = max(l.latest, at), true
		return true
	}
	return l.ended || !l.upTo.IsZero()
}

// fill reads more of a log, and reports whether it had lines.
func (r *Follower) fill(l *log) (bool, error) {
	if l.input == nil {
		f, err := open(l.name, r.Stdin)
		if err != nil {
			l.ended = true
			return false, err
		}
		l.input = newStream(f, r.done)
	}
	x, err := l.input.look()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.parse(l, x)
		l.upTo = x.upTo
		return l.upTo.IsZero(), nil
	}
	l.ended = true
	if l.parser != nil && l.parser.Partial() {
		r.counts.Lines++
		r.malformed(l, nil, errCutOff)
	}
	if errors.Is(err, io.EOF) {
		err = nil
	} else {
		err = fmt.Errorf("%s: %w", l.name, err)
	}
	return false, errors.Join(err, l.input.close())
}

// nanos is a second in nanoseconds. Times are in Unix nanoseconds, and seconds in Unix time.
const nanos = timeline.Nanos

// spread distributes the times of whole seconds evenly over their second. A log that is read again gets the same times.
// spread remembers the last few seconds.
type spread [16]struct {
	second int64
	at     float64 // the last offset, in [0, 1)
}

// golden is the distance of successive offsets. It spreads any number of them evenly over [0, 1).
const golden = 0.6180339887498949

// next returns the next offset in a second, in nanoseconds.
func (s *spread) next(second int64) int64 {
	x := &s[second%int64(len(s))]
	if x.second != second {
		x.second, x.at = second, 0
	}
	if x.at += golden; x.at >= 1 {
		x.at--
	}
	return int64(x.at * float64(nanos))
}

// take adds a line to the timeline, or counts why it does not. A taken line stays. From then on, lines that are earlier
// by more than the tolerance are late.
func (r *Follower) take(l *log, it *item) error {
	second := it.stamp / nanos
	if r.timeline.From == 0 { // it is the first line
		r.timeline.From = max(second-int64(r.Tolerance/time.Second), 1)
	}
	c := r.call(it)
	if r.after != 0 && r.counted(&c) {
		r.counts.Lines--
		l.count.Lines--
		return nil
	}
	if second < r.timeline.From && !c.Passed || r.timeline.Late(&c) {
		r.counts.Late++
		if l.count.Late++; l.count.Late == 1 {
			r.behind = append(r.behind, l.count)
		}
		return nil
	}
	if err := r.timeline.Until(second - int64(r.Tolerance/time.Second)); err != nil {
		return err
	}
	r.counts.Statuses[it.status]++
	if it.unearned {
		r.counts.Unearned++
	}
	if clipped := r.timeline.Add(c); clipped && !c.Passed {
		r.counts.Clipped++
	}
	// So many calls are held only if the tolerance is long and the log is busy. Then bounded memory is more important
	// than late lines: the oldest seconds end early.
	for r.timeline.Held() > timeline.MaxHeld {
		r.counts.Evicted++
		if err := r.timeline.Until(r.timeline.From + 1); err != nil {
			return err
		}
	}
	return nil
}

// call returns the call of a line. A call without a duration is in the second of its line.
func (r *Follower) call(it *item) timeline.Call {
	c := timeline.Call{At: it.stamp, Duration: it.duration, Name: it.name, N: 1, Status: it.status}
	switch {
	// The options ensure that no status is both blocked and failed.
	case r.Blocks[it.status]:
		c.Outcome = timeline.Blocked
	case r.Exceptions[it.status]:
		c.Outcome = timeline.Failed
	}
	// The result of a gRPC call is its gRPC status. The HTTP status is 200.
	if code := uint32(it.grpc) - 1; it.grpc > 0 && c.Outcome != timeline.Blocked {
		c.Status = timeline.GRPC + int16(code)
		if c.Outcome = timeline.Good; isServerFault(code) {
			c.Outcome = timeline.Failed
		}
	}
	if c.Duration == timeline.Unknown {
		c.At = it.stamp / nanos * nanos
		return c
	}
	if it.coarse {
		c.At += r.spread.next(it.stamp / nanos)
	}
	if it.end {
		c.At -= c.Duration
	}
	return c
}

// isServerFault reports whether a gRPC status blames the server, as package grpcstat decides for servers.
func isServerFault(code uint32) bool {
	switch collector.GRPCCode(code).String() {
	case "Unknown", "DeadlineExceeded", "Unimplemented", "Internal", "Unavailable", "DataLoss", collector.OtherCode:
		return true
	}
	return false
}

// counted reports whether the previous process counted a call. It sets Passed if that process counted only the start of
// the call. The line was written before the second ended, because servers write lines when calls end.
func (r *Follower) counted(c *timeline.Call) bool {
	ended := (c.At + max(c.Duration, 0)) / nanos
	if ended <= r.after {
		return true
	}
	c.Passed = c.At/nanos <= r.after && ended <= r.after+int64(r.Tolerance/time.Second)
	return c.Passed && c.Outcome == timeline.Blocked
}
