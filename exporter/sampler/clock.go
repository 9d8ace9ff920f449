package sampler

import (
	"math"
	"slices"
	"time"
)

// wallClock compares created timestamps with the wall clock, which may be set.
//
// It is read once a second. Its start is such that whatever was created before the open second has a created timestamp from before
// it, whatever was done to the clock, provided that it was set at most once since the turn before. While nobody sets the
// clock, it is when the second began.
type wallClock struct {
	open  int64         // the second that was open at the last turn
	at    time.Duration // the last turn, by the monotonic clock
	wall  time.Time     // what the wall clock showed then
	start time.Time     // of that second
	mark  time.Time     // the latest time that the wall clock can have shown until then
}

// turn reads the clocks, so far into the open second. It returns the starts of the second before and of the open one in Unix
// nanoseconds. Without a turn in the second before, its start is after all times.
func (c *wallClock) turn(open int64, at time.Duration, wall time.Time, into time.Duration) (from, to int64) {
	from = math.MaxInt64
	unset := wall // what the clock would show if nobody had set it since the turn before
	if !c.wall.IsZero() {
		unset = c.wall.Add(at - c.at)
		if c.open == open-1 {
			from = c.start.UnixNano()
		}
	}
	c.start = latest(c.mark, unset.Add(-into), wall.Add(-into))
	c.mark = latest(c.mark, unset, wall)
	c.open, c.at, c.wall = open, at, wall
	return from, c.start.UnixNano()
}

func latest(all ...time.Time) time.Time { return slices.MaxFunc(all, time.Time.Compare) }
