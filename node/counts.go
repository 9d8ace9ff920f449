package node

import (
	"math"
	"time"
)

// Counts is what happened in some span of time. It is a plain value: comparable, and the sum of two spans or of two
// statistics is [Counts.Add]. The zero value is an idle span.
type Counts struct {
	// Pass counts the calls that were admitted, in the second in which they began.
	Pass int64
	// Block counts the calls that were refused.
	Block int64
	// Complete counts the calls that ended, failed ones included: Sentinel's success.
	Complete int64
	// Exception counts the calls that ended with an error. It is a part of Complete.
	Exception int64
	// OccupiedPass counts the calls that passed on quota borrowed from a later bucket. It is a part of Pass.
	OccupiedPass int64
	// RTSum is the response time of all completed calls together; a batch of n counts n times.
	RTSum time.Duration
	// RTMin and RTMax are the shortest and the longest response time; both 0 where Complete is 0.
	RTMin, RTMax time.Duration
}

// Add returns the counts of c's span and o's span together. Sums stop at the largest int64.
func (c Counts) Add(o Counts) Counts {
	c.add(&o)
	return c
}

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

// rt widens the range of response times. It must run before Complete is raised.
func (c *Counts) rt(lo, hi time.Duration) {
	if c.Complete == 0 || lo < c.RTMin {
		c.RTMin = lo
	}
	if hi > c.RTMax {
		c.RTMax = hi
	}
}

// AvgRT is the average response time: RTSum / Complete, 0 for an idle span.
func (c Counts) AvgRT() time.Duration {
	if c.Complete == 0 {
		return 0
	}
	return c.RTSum / time.Duration(c.Complete)
}

// MinRT is the shortest response time. It reports false for an idle span, which has none.
func (c Counts) MinRT() (time.Duration, bool) { return c.RTMin, c.Complete > 0 }

// ExceptionRatio is the share of the calls that ended which failed, from 0 to 1; 0 for an idle span.
func (c Counts) ExceptionRatio() float64 { return ratio(c.Exception, c.Complete) }

// BlockRatio is the share of all calls that were refused, from 0 to 1; 0 for an idle span.
func (c Counts) BlockRatio() float64 { return ratio(c.Block, c.Total()) }

func ratio(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// Total is how many calls were made, admitted or not: Pass + Block.
func (c Counts) Total() int64 { return saturate(c.Pass, c.Block) }

// Idle reports whether nothing at all happened.
func (c Counts) Idle() bool { return c == Counts{} }

// saturate adds two numbers that are not negative and stops at the largest int64.
func saturate(a, b int64) int64 {
	if sum := a + b; sum >= 0 {
		return sum
	}
	return math.MaxInt64
}

// times multiplies two numbers that are not negative and stops at the largest int64.
func times(a, b int64) int64 {
	if a != 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}

// MetricNode is the record of one sealed second: what happened between Start and a second later. It is a plain value
// and never changes.
type MetricNode struct {
	// Start is the wall-clock second, in UTC.
	Start time.Time
	Counts
	// InFlight is how many calls were in flight when the second ended: all that had entered less all that had left.
	InFlight int64
	// InFlightMax is the most that were in flight at any moment of the second. It adds up over nothing.
	//
	// For a view of one leaf it is exact while that has one stripe; with several it is the sum of the most that each saw, at
	// whatever moments, and never below the truth. For a view of several leaves it is the most that was *seen*, by looks about
	// a millisecond apart: within some per cent where calls take that long, see [Shape.Watch]. Without looks it is what is
	// surely so: the most of any one leaf, what was in flight when the second began and ended, and the average.
	InFlightMax int64
	// InFlightTime is the time that all calls together were in flight in the second, so that per second it is how many were
	// on average: see [MetricNode.InFlightAvg]. It adds up, over seconds, leaves, resources and processes: over all seconds
	// it is the time that all calls took, a batch being one. A second that is slewed counts as a whole one. A call that goes
	// on into the next second is rounded by up to 4.1 µs, which are made up for in the second in which it ends.
	InFlightTime time.Duration
	// PassPeak is the highest number of passes in any sliding window of one second that ended within this second,
	// at the resolution of the second window's buckets. A burst that straddles two seconds shows its height here. The
	// passes of a bucket count up to 2^53.
	PassPeak int64
}

// Idle reports whether nothing happened in the second and nothing was in flight.
func (m MetricNode) Idle() bool {
	return m.Counts.Idle() && m.InFlight == 0 && m.InFlightMax == 0 && m.InFlightTime == 0
}

// InFlightAvg is how many calls were in flight on average.
func (m MetricNode) InFlightAvg() float64 { return m.InFlightTime.Seconds() }

// add adds the record of a leaf's second. InFlightMax is the sum of the leaves' until it is bound.
func (m *MetricNode) add(rec *sealed, t *atOnce) {
	t.most = max(t.most, rec.sure)
	t.began += rec.began
	m.Counts.add(&rec.Counts)
	m.InFlight += rec.inFlight
	m.InFlightMax += rec.most
	m.InFlightTime = time.Duration(saturate(int64(m.InFlightTime), int64(rec.spent)))
}

// addIdle adds a leaf's second in which nothing happened.
func (m *MetricNode) addIdle(inFlight int64, t *atOnce) {
	t.most = max(t.most, inFlight)
	t.began += inFlight
	m.InFlight += inFlight
	m.InFlightMax += inFlight
	m.InFlightTime = time.Duration(saturate(int64(m.InFlightTime), inFlight*int64(time.Second)))
}
