package node

import (
	"math"
	"time"
)

// Counts holds the counts of the events in a span of time, and the response times of the calls that ended in this span.
// Values can be copied and compared. [Counts.Add] adds the counts of two spans or of two statistics. The zero value is
// a span without events.
type Counts struct {
	// Pass counts the admitted calls. A call counts when it enters, not when it ends.
	Pass int64
	// Block counts the refused calls.
	Block int64
	// Complete counts the calls that ended, with or without an error. Sentinel's name for this count is success.
	Complete int64
	// Exception counts the calls that ended with an error. They are a part of Complete.
	Exception int64
	// OccupiedPass counts the calls that had borrowed quota from a later bucket, and then passed in that bucket. They
	// are a part of Pass.
	OccupiedPass int64
	// RTSum is the sum of the response times of all completed calls. The response time of a batch of n calls is added n
	// times.
	RTSum time.Duration
	// RTMin and RTMax are the shortest and the longest response time. They are both 0 if Complete is 0.
	RTMin, RTMax time.Duration
}

// Add returns the sum of c and o. Each count and sum stops at the largest int64.
func (c Counts) Add(o Counts) Counts {
	c.add(&o)
	return c
}

// add adds o to c in place.
func (c *Counts) add(o *Counts) {
	if o.Complete > 0 {
		c.rt(o.RTMin, o.RTMax)
	}
	c.Pass = saturate(c.Pass, o.Pass)
	c.Block = saturate(c.Block, o.Block)
	c.Complete = saturate(c.Complete, o.Complete)
	c.Exception = saturate(c.Exception, o.Exception)
	c.OccupiedPass = saturate(c.OccupiedPass, o.OccupiedPass)
	c.RTSum = time.Duration(saturate(int64(c.RTSum), int64(o.RTSum)))
}

// sub subtracts o from c. The events of o must be a part of the events of c. If a count or a sum of c has stopped at
// the largest int64, it is too low, so a difference may be negative. sub then sets the difference to 0. RTMin and RTMax
// of c do not change.
func (c *Counts) sub(o *Counts) {
	c.Pass, c.Block = max(c.Pass-o.Pass, 0), max(c.Block-o.Block, 0)
	c.Complete, c.Exception = max(c.Complete-o.Complete, 0), max(c.Exception-o.Exception, 0)
	c.OccupiedPass, c.RTSum = max(c.OccupiedPass-o.OccupiedPass, 0), max(c.RTSum-o.RTSum, 0)
}

// rt extends the range from RTMin to RTMax so that it includes the response times lo and hi. While Complete is 0, rt
// assumes that the range is empty. The caller must therefore call rt before it increases Complete.
func (c *Counts) rt(lo, hi time.Duration) {
	if c.Complete == 0 || lo < c.RTMin {
		c.RTMin = lo
	}
	if hi > c.RTMax {
		c.RTMax = hi
	}
}

// AvgRT returns the average response time, RTSum / Complete, or 0 if no call ended.
func (c Counts) AvgRT() time.Duration {
	if c.Complete == 0 {
		return 0
	}
	return c.RTSum / time.Duration(c.Complete)
}

// MinRT returns the shortest response time, and true. If no call ended in the span, MinRT returns 0 and false.
func (c Counts) MinRT() (time.Duration, bool) { return c.RTMin, c.Complete > 0 }

// ExceptionRatio returns the share of failed calls among the calls that ended: a number from 0 to 1. It returns 0 if no
// call ended.
func (c Counts) ExceptionRatio() float64 { return ratio(c.Exception, c.Complete) }

// BlockRatio returns the share of refused calls among all calls, admitted or refused: a number from 0 to 1. It returns
// 0 without calls.
func (c Counts) BlockRatio() float64 { return ratio(c.Block, c.Total()) }

func ratio(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// Total returns the number of calls, admitted or refused: Pass + Block.
func (c Counts) Total() int64 { return saturate(c.Pass, c.Block) }

// Idle reports whether the span has no events.
func (c Counts) Idle() bool { return c == Counts{} }

// saturate returns the sum of two numbers that are not negative. It returns the largest int64 if the sum is larger.
func saturate(a, b int64) int64 {
	if sum := a + b; sum >= 0 {
		return sum
	}
	return math.MaxInt64
}

// times returns the product of two numbers that are not negative. It returns the largest int64 if the product is
// larger.
func times(a, b int64) int64 {
	if a != 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}
