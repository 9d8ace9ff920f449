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

// advance moves lines into the timeline, each time from the log with the earliest time, until a log must be read first.
// It returns that log. It returns nil if all logs have ended or have no lines now.
//
// The time of a log is the latest time of its lines so far, not the time of its next line. Otherwise a line that is out
// of order within its log would look as if the whole log was behind the others:
//
//	log a   10:00:01  10:00:05  10:00:02 (out of order)  10:00:06
//	latest  10:00:01  10:00:05  10:00:05                 10:00:06
//
// Each log is therefore ordered by itself, up to the tolerance, and all logs share one timeline.
func (r *Follower) advance() (*log, error) {
	for {
		var first *log
		for _, l := range r.logs {
			// Open a log that ends only when the other logs have reached its first line. A replay of a year of rotated
			// files then has few files open at a time, and names are earned in the order of time. A pipe is open
			// already.
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
		// ready is reset, because settle must check the next line of this log, too.
		it := &first.items[first.next]
		first.next, first.ready = first.next+1, false
		if err := r.take(first, it); err != nil {
			return nil, err
		}
	}
}

// witnesses is the number of following lines that decide whether a line is an outlier. With ten, an outlier among them
// does not change the majority.
const witnesses = 10

// settle skips lines from the future and outliers until the next line of a log can be taken. An outlier is later than
// all lines before it by more than the tolerance, while most of the following lines are not:
//
//	10:00:01  10:00:02  23:59:59  10:00:03  10:00:04     23:59:59 is an outlier: a clock jumped for one line
//	10:00:01  10:00:02  23:59:59  23:59:59  23:59:59     not outliers: the service was idle until the evening
//
// An accepted outlier would end all seconds before it, and make every following line late. settle returns false if it
// needs lines that are not read yet.
func (r *Follower) settle(l *log) bool {
	tolerance := int64(r.Tolerance)
	for ; l.next < len(l.items); l.next++ {
		at := l.items[l.next].stamp
		switch {
		case at > r.present:
			r.counts.Future++
			continue
		case at > l.latest+tolerance:
			// Read more unless the log has no further lines now.
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

// fill reads the next block of a log and parses it. It reports whether the block had lines.
//
// A block without lines is not always the end: a followed log without new lines sets upTo, and a log that ends returns
// io.EOF. A partial last line counts as a malformed line.
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

// nanos is the number of nanoseconds in a second. Variables for times hold Unix nanoseconds; variables for seconds hold
// Unix seconds.
const nanos = timeline.Nanos

// spread distributes the times of whole seconds evenly over their seconds. It depends only on the order of the lines,
// so a log that is read again gets the same times. It remembers the last 16 seconds, in slots by second modulo 16,
// because lines of neighboring seconds are mixed.
type spread [16]struct {
	second int64
	at     float64 // the last offset, in [0, 1)
}

// golden is the distance between successive offsets, the fractional part of the golden ratio. Its multiples, modulo 1,
// are spread evenly over [0, 1) for any number of lines, which is unknown when the first line arrives.
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

// take adds a line to the timeline, or counts the reason for not adding it. Lines before the timeline's open seconds
// are late. After take, the open seconds reach back from the line by the tolerance:
//
//	the line                                             take
//	counted by the previous process                      drops it, also from Lines
//	logged in a second that has ended                    counts it as Late, in total and for its log
//	logged in an open second, started in one that ended  adds it to the oldest open second, counts it as Clipped
//	started and logged in open seconds                   adds it
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
	// Holding this many calls requires a long tolerance and a busy log. Bounded memory is then more important than late
	// lines: end the oldest seconds early.
	for r.timeline.Held() > timeline.MaxHeld {
		r.counts.Evicted++
		if err := r.timeline.Until(r.timeline.From + 1); err != nil {
			return err
		}
	}
	return nil
}

// call returns the call of a line. A call without a duration passes and completes in the second of its line.
func (r *Follower) call(it *item) timeline.Call {
	c := timeline.Call{At: it.stamp, Duration: it.duration, Name: it.name, N: 1, Status: it.status}
	switch {
	// Check of Job ensures that no status is both blocked and failed.
	case r.Blocks[it.status]:
		c.Outcome = timeline.Blocked
	case r.Exceptions[it.status]:
		c.Outcome = timeline.Failed
	}
	// A gRPC status determines the result of a gRPC call, because its HTTP status is 200 even if it fails.
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

// isServerFault reports whether a gRPC status means a failure of the server. Package grpcstat makes the same
// distinction.
func isServerFault(code uint32) bool {
	switch collector.GRPCCode(code).String() {
	case "Unknown", "DeadlineExceeded", "Unimplemented", "Internal", "Unavailable", "DataLoss", collector.OtherCode:
		return true
	}
	return false
}

// counted reports whether the previous process counted a call. The metric log of that process ends with the second
// r.after:
//
//	start      end                         counted by the previous process
//	<= after   <= after                    start and end: counted returns true
//	<= after   <= after + the tolerance    only its start: counted sets Passed
//	<= after   later                       nothing, because the line did not exist when the second was replayed
//	> after    > after                     nothing
//
// A blocked call has no end, so the previous process has counted all of it in the second case, too.
func (r *Follower) counted(c *timeline.Call) bool {
	ended := (c.At + max(c.Duration, 0)) / nanos
	if ended <= r.after {
		return true
	}
	c.Passed = c.At/nanos <= r.after && ended <= r.after+int64(r.Tolerance/time.Second)
	return c.Passed && c.Outcome == timeline.Blocked
}
