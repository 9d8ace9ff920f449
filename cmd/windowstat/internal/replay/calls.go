package replay

import "time"

// call is what counts of a line of an access log. Equal calls may be merged into one.
type call struct {
	at       int64 // when it began, Unix nanoseconds
	clipped  int64 // how much earlier it began, in a second that had ended
	duration int64 // nanoseconds; unknown if the log does not say
	name     int32 // of its resource, an index into the names
	n        int32 // how many calls this stands for
	outcome
	status int16
	passed bool // the previous process counted its beginning
}

// unknown is the duration of a call whose log does not say.
const unknown = -1

// outcome is what became of a call, as its status tells.
type outcome uint8

const (
	// A call that is neither failed nor blocked is good, whatever its status is.
	good outcome = iota
	failed
	blocked
)

// spread distributes times of whole seconds evenly over their second, and the same way when a log is read again. It
// remembers the last few seconds.
type spread [16]struct {
	second int64
	at     float64 // the last offset, in [0, 1)
}

// golden spreads any number of points evenly over [0, 1) when it is added to each to get the next.
const golden = 0.6180339887498949

// next returns the offset of the next time in a second, in nanoseconds.
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

// take puts a line into the timeline, or counts why it is not. It is the end of the order: what was taken stays, and lines that are
// earlier than it by more than the tolerance are late from now on.
func (r *Follower) take(l *log, it *item) error {
	second := it.stamp / nanos
	if r.timeline.from == 0 { // it is the first line
		r.timeline.from = max(second-int64(r.Tolerance/time.Second), 1)
	}
	c := r.call(it)
	if r.after != 0 && r.counted(&c) {
		r.counts.Lines--
		l.count.Lines--
		return nil
	}
	if second < r.timeline.from && !c.passed || c.at+max(c.duration, 0) < r.timeline.from*nanos {
		r.late(l)
		return nil
	}
	if err := r.timeline.until(second - int64(r.Tolerance/time.Second)); err != nil {
		return err
	}
	r.counts.Statuses[it.status]++
	if it.unearned {
		r.counts.Unearned++
	}
	// The call began in a second that is over, and ends in one that is not: it passes in the first that accepts calls, with all of its
	// duration.
	if open := r.timeline.from * nanos; c.at < open {
		c.clipped, c.at = open-c.at, open
		if !c.passed {
			r.counts.Clipped++
		}
	}
	r.timeline.add(c)
	// So many calls are held only if the tolerance is long and the log busy. Memory is worth more than late lines then.
	for r.timeline.held > maxHeld {
		r.counts.Evicted++
		if err := r.timeline.until(r.timeline.from + 1); err != nil {
			return err
		}
	}
	return nil
}

// call returns the call of a line. Without a duration it is in the second of its line.
func (r *Follower) call(it *item) call {
	c := call{at: it.stamp, duration: it.duration, name: it.name, n: 1, status: it.status}
	switch {
	// A status may be that of a call that was refused, which did not pass, or of one that failed; the options see to it that none is both.
	case r.Blocks[it.status]:
		c.outcome = blocked
	case r.Exceptions[it.status]:
		c.outcome = failed
	}
	if c.duration == unknown {
		c.at = it.stamp / nanos * nanos
		return c
	}
	if it.coarse {
		c.at += r.spread.next(it.stamp / nanos)
	}
	if it.end {
		c.at -= c.duration
	}
	return c
}

// counted reports whether the previous process counted a call. It marks a call of which that process counted only the
// beginning: the line was there before the second ended, since servers write lines when calls end.
func (r *Follower) counted(c *call) bool {
	ended := (c.at + max(c.duration, 0)) / nanos
	if ended <= r.after {
		return true
	}
	c.passed = c.at/nanos <= r.after && ended <= r.after+int64(r.Tolerance/time.Second)
	return c.passed && c.outcome == blocked
}
