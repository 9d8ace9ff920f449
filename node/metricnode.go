package node

import "time"

// MetricNode is the record of one sealed second: its events, from Start to a second later, and its calls in flight. A
// MetricNode is a plain value. Once a second has a record, the record never changes.
type MetricNode struct {
	// Start is the wall-clock second, in UTC.
	Start time.Time
	Counts
	// InFlight is the number of calls in flight when the second ended: all entries minus all exits.
	InFlight int64
	// InFlightMax is a lower bound of the maximum number of calls in flight in the second. Do not sum it over seconds
	// or resources. For a view of one leaf (one resource, called by one origin in one context), it is exact while the
	// leaf has one stripe. The leaf gets more stripes when goroutines often contend for it. Under a limit on
	// concurrency, the value of a leaf is always exact. Otherwise it is the highest of these numbers: the maximum of
	// one leaf or stripe, the calls in flight at the start and at the end of the second, and the average, rounded up.
	InFlightMax int64
	// InFlightTime is the call-seconds of the second: the time that all calls together were in flight. Per second it is
	// the average number of calls in flight, see [MetricNode.InFlightAvg]. It adds up over seconds, leaves, resources
	// and processes. Over all seconds it equals the time that all calls took, a batch counting as one call; the share
	// of a call that is in flight may differ by 4.1 µs.
	//
	// In a second that slewing has lengthened or shortened, calls spend the time that the second really took. If a call
	// enters or leaves with a stamp from a sealed second, the open second gets the correction. Time that is missing in
	// the sealed second is added to the open second, and time that the sealed second counted in excess is subtracted
	// from it. A record is never negative: if a subtraction exceeds the call-seconds of the open second, the remainder
	// is subtracted from the next second.
	InFlightTime time.Duration
	// PassPeak is the highest number of passes in any sliding window of one second that ended within this second, at
	// the resolution of the second window's buckets. It shows the height of a burst across the boundary of two seconds.
	// At most 2^53 passes of each bucket are included.
	PassPeak int64
}

// Idle reports whether the second had no events and no call in flight.
func (m MetricNode) Idle() bool {
	return m.Counts.Idle() && m.InFlight == 0 && m.InFlightMax == 0 && m.InFlightTime == 0
}

// InFlightAvg returns the average number of calls in flight.
func (m MetricNode) InFlightAvg() float64 { return m.InFlightTime.Seconds() }

// Column describes one number of the record of a second. Code that shows, writes or sends whole records iterates over
// [Columns], so a new number is added in one place.
type Column struct {
	// Name is the name of the column, in lower case with underscores and without a unit, such as "pass" or "rt_sum".
	Name string
	// Help describes the number. A phrase such as "in this second" can be appended to Help, or inserted before the
	// comma if Help contains one.
	Help string
	// Kind states the unit of the number, and whether it adds up over seconds and views.
	Kind Kind
	// Detail marks a part of another column. Views that show only the main counts leave it out.
	Detail bool
	// At returns the address of the number in a record, for reading and writing. Times are in nanoseconds.
	At func(*MetricNode) *int64
	// None reports whether a record lacks the number: without completions there is no shortest response time. The
	// function is nil for numbers that every record has.
	None func(*MetricNode) bool
}

// Kind states how a number of a second may be read.
type Kind int

const (
	// Count is a number of calls. It adds up over seconds, and over views that share no call.
	Count Kind = iota
	// Level is a number of calls at the end of the second. It adds up over views that share no call, but not over
	// seconds.
	Level
	// Peak is a maximum within the second; maxima do not add up.
	Peak
	// Time is a time in nanoseconds.
	Time
	// CallTime is a number of call-seconds, in nanoseconds. Per second it is an average number of calls. It adds up
	// over seconds, and over views that share no call.
	CallTime
)

// Columns returns all numbers of a [MetricNode], in the order of display. The caller owns the slice, and should keep it
// if it is used often.
func Columns() []Column {
	idle := func(m *MetricNode) bool { return m.Complete == 0 }
	return []Column{
		{Name: "pass", Help: "Calls admitted", At: func(m *MetricNode) *int64 { return &m.Pass }},
		{Name: "block", Help: "Calls refused", At: func(m *MetricNode) *int64 { return &m.Block }},
		{
			Name: "complete", Help: "Calls that ended, failed ones included",
			At: func(m *MetricNode) *int64 { return &m.Complete },
		},
		{
			Name: "exception", Help: "Calls that ended with an error",
			At: func(m *MetricNode) *int64 { return &m.Exception },
		},
		{
			Name: "occupied_pass", Help: "Calls admitted, on quota that they had borrowed earlier", Detail: true,
			At: func(m *MetricNode) *int64 { return &m.OccupiedPass },
		},
		{
			Name: "in_flight", Help: "Calls in flight when the second ended", Kind: Level,
			At: func(m *MetricNode) *int64 { return &m.InFlight },
		},
		{
			Name: "in_flight_avg", Help: "Average number of calls in flight in the second", Kind: CallTime,
			At: func(m *MetricNode) *int64 { return (*int64)(&m.InFlightTime) },
		},
		{
			Name: "in_flight_max", Help: "Lower bound of the maximum number of calls in flight in the second",
			Kind: Peak,
			At:   func(m *MetricNode) *int64 { return &m.InFlightMax },
		},
		{
			Name: "pass_peak", Help: "Highest number of calls admitted in a sliding second that ended in this one",
			Kind: Peak,
			At:   func(m *MetricNode) *int64 { return &m.PassPeak },
		},
		{
			Name: "rt_sum", Help: "Total response time of the calls that ended", Kind: Time,
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
