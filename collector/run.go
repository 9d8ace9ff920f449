package collector

import (
	"math/rand/v2"
	"time"
)

// newRun makes the number of a run that begins now: milliseconds since 1970, and 12 random bits, because a fleet may start at
// once. It has 53 bits, so a float64 has it exactly.
func newRun(began time.Time) int64 { return began.UnixMilli()<<12&(1<<53-1) | rand.Int64N(1<<12) }

// RunID is a number that tells this Collector's seconds from those of every other one: of the processes before and after it, of
// other instances, of replicas. It is an integer below 2^53, to be compared for equality only.
//
// A nil Collector has 0.
func (c *Collector) RunID() int64 {
	if c == nil {
		return 0
	}
	return c.run
}
