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
	// InFlightMax is how many were in flight at once at some moment of the second, at least. It is never above the truth, and adds
	// up over nothing. For a view of one leaf, one resource called by one origin in one context, it is exact while that has one
	// stripe: until goroutines meet at it often, and under a limit on concurrency. Otherwise it is what is surely so: the most of
	// any one leaf or stripe, what all had when the second began and ended, and the average, rounded up.
	InFlightMax int64
	// InFlightTime is the time that all calls together were in flight in the second, so that per second it is how many were
	// on average: see [MetricNode.InFlightAvg]. It adds up, over seconds, leaves, resources and processes: over all seconds
	// it is the time that all calls took, a batch being one, to 4.1 µs for a call that is still in flight. A second that is
	// slewed has the time that it really took. A call that is counted after a second was sealed, with a stamp from that second,
	// adds what it spent there, or takes back what it did not, in the second that is open; what would be less than nothing is taken
	// from the next.
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

// Column is one number of the record of a second. Whatever shows, writes or sends whole records goes by [Columns], so that
// a new number is added in one place.
type Column struct {
	// Name is the column's name, in lower case with underscores and without a unit, such as "pass" or "rt_sum".
	Name string
	// Help says what the number is. "in this second" or the like goes to its end, or before its comma.
	Help string
	// Kind is the number's unit, and what it can be added up over.
	Kind Kind
	// Detail marks a part of another column. It is left out where only the main counts are shown.
	Detail bool
	// At is where the number stands in a record, to read and to set; a time in nanoseconds.
	At func(*MetricNode) *int64
	// None reports whether a record lacks the number: without calls that ended there is no shortest response time. It is nil
	// for a number that every record has.
	None func(*MetricNode) bool
}

// Kind is how a number of a second may be read.
type Kind int

const (
	// Count is a number of calls. It adds up over seconds and over views that share no call.
	Count Kind = iota
	// Level is a number of calls at the end of the second. It adds up over such views, and not over seconds.
	Level
	// Peak is the highest number of calls at some moment. It adds up over nothing.
	Peak
	// Time is a time in nanoseconds.
	Time
	// CallTime is the time that calls spent, together, in nanoseconds. Per second it is how many there were on average. It
	// adds up over seconds and over such views.
	CallTime
)

// Columns are all numbers of a [MetricNode], in the order in which they are shown. The slice is the caller's; make it once
// where it is used often.
func Columns() []Column {
	idle := func(m *MetricNode) bool { return m.Complete == 0 }
	return []Column{
		{Name: "pass", Help: "Calls admitted", At: func(m *MetricNode) *int64 { return &m.Pass }},
		{Name: "block", Help: "Calls refused", At: func(m *MetricNode) *int64 { return &m.Block }},
		{Name: "complete", Help: "Calls that ended, failed ones included", At: func(m *MetricNode) *int64 { return &m.Complete }},
		{Name: "exception", Help: "Calls that ended with an error", At: func(m *MetricNode) *int64 { return &m.Exception }},
		{
			Name: "occupied_pass", Help: "Calls admitted, on quota that they had borrowed earlier", Detail: true,
			At: func(m *MetricNode) *int64 { return &m.OccupiedPass },
		},
		{
			Name: "in_flight", Help: "Calls in flight when the second ended", Kind: Level,
			At: func(m *MetricNode) *int64 { return &m.InFlight },
		},
		{
			Name: "in_flight_avg", Help: "Calls in flight on average over the second", Kind: CallTime,
			At: func(m *MetricNode) *int64 { return (*int64)(&m.InFlightTime) },
		},
		{
			Name: "in_flight_max", Help: "Most calls in flight at once in the second: at least so many", Kind: Peak,
			At: func(m *MetricNode) *int64 { return &m.InFlightMax },
		},
		{
			Name: "pass_peak", Help: "Most calls admitted in any sliding second that ended in this one", Kind: Peak,
			At: func(m *MetricNode) *int64 { return &m.PassPeak },
		},
		{
			Name: "rt_sum", Help: "Response time of all calls that ended", Kind: Time,
			At: func(m *MetricNode) *int64 { return (*int64)(&m.RTSum) },
		},
		{
			Name: "rt_min", Help: "Shortest response time", Kind: Time, None: idle,
			At: func(m *MetricNode) *int64 { return (*int64)(&m.RTMin) },
		},
		{
			Name: "rt_max", Help: "Longest response time", Kind: Time, None: idle,
			At: func(m *MetricNode) *int64 { return (*int64)(&m.RTMax) },
		},
	}
}
