package node

import "time"

// MetricNode is the record of one sealed second: the counts of the events in the second that begins at Start, and the
// calls in flight. Values can be copied and compared. The record of a second never changes.
type MetricNode struct {
	// Start is the start of the wall-clock second to which the record belongs, in UTC.
	Start time.Time
	Counts
	// InFlight is the number of calls in flight when the second ended: all entries minus all exits.
	InFlight int64
	// InFlightMax is a lower bound of the maximum number of calls in flight in the second. Do not sum it over seconds
	// or resources.
	//
	// For a view of one leaf (one resource, called by one origin in one context), InFlightMax is exact while the leaf
	// has one stripe. The leaf gets more stripes when goroutines often contend for its lock. Under a limit on
	// concurrency, new calls enter through the first stripe, and InFlightMax of a view of one leaf is exact again. Two
	// kinds of calls are exceptions, and make InFlightMax a lower bound: calls that entered through another stripe
	// before the limit was set, and calls that enter while a bucket turns.
	//
	// In all other cases, InFlightMax is the highest of four numbers: the highest maximum of a single leaf or stripe,
	// the calls in flight at the start of the second, the calls in flight at the end of the second, and the average in
	// flight, rounded up.
	InFlightMax int64
	// InFlightMaxUpper is an upper bound of the maximum number of calls in flight in the second. It is the sum of the
	// maxima of all leaves and stripes, which may belong to different instants. For a view of one leaf with one stripe,
	// it equals InFlightMax. With many leaves it may be far above the maximum: each leaf that had a call in flight at
	// any time in the second adds at least 1. Do not sum InFlightMaxUpper over seconds. It can be summed over views
	// that share no call: the sum is an upper bound for all these views together. A metric log has only InFlightMax, so
	// InFlightMaxUpper is 0 in a record from a metric log.
	InFlightMaxUpper int64
	// InFlightTime is the call-seconds of the second: the time that all calls together were in flight. Divided by one
	// second, it is the average number of calls in flight, see [MetricNode.InFlightAvg]. It can be summed over seconds,
	// leaves, resources and processes. The sum over all seconds equals the sum of the response times, if each batch
	// counts once. The time of a call that is still in flight may be off by 4.1 µs.
	//
	// Slewing lengthens or shortens seconds. InFlightTime of such a second contains the time that the calls really
	// spent in it.
	//
	// A call may enter or exit with a stamp from a sealed second. The sealed second does not change; the open second
	// gets a correction. A late entry adds the time that the call spent before the open second. A late exit subtracts
	// the time that earlier seconds counted after the call had ended. InFlightTime is never negative: if a subtraction
	// exceeds the call-seconds of the open second, the rest is subtracted from the next second.
	InFlightTime time.Duration
	// PassPeak is the highest number of passes in a sliding window of one second that ended within this second. The
	// window slides in steps of one bucket. PassPeak therefore shows a burst that begins in one second and ends in the
	// next. If a window begins in the previous second, at most 2^53 passes of each bucket are included.
	PassPeak int64
}

// Idle reports whether the second had no events and no call in flight.
func (m MetricNode) Idle() bool {
	return m.Counts.Idle() && m.InFlight == 0 && m.InFlightMax == 0 && m.InFlightMaxUpper == 0 && m.InFlightTime == 0
}

// InFlightAvg returns the average number of calls in flight in the second.
func (m MetricNode) InFlightAvg() float64 { return m.InFlightTime.Seconds() }

// Column describes one number of the record of a second. Code that shows, writes or sends whole records iterates over
// [Columns], so a new number is added in one place.
type Column struct {
	// Name is the name of the column, in lower case with underscores and without a unit, such as "pass" or "rt_sum".
	Name string
	// Help describes the number. A phrase such as "in this second" can be appended to Help. If Help contains a comma,
	// insert the phrase before that comma instead.
	Help string
	// Kind states the unit of the number. For all kinds except [Time], it also states whether the number can be summed
	// over seconds and over views.
	Kind Kind
	// Detail reports whether a short display leaves out this number. Examples are occupied_pass, which is a part of
	// pass, and in_flight_max_upper.
	Detail bool
	// At returns the address of the number in a record, for reading and writing. Times and call-seconds are in
	// nanoseconds.
	At func(*MetricNode) *int64
	// None reports whether a record lacks the number. For example, a second without completions has no shortest
	// response time. None is nil if every record has the number.
	None func(*MetricNode) bool
}

// Kind is the unit of a number. All kinds except [Time] also state whether the number can be summed over seconds and
// over views.
type Kind int

const (
	// Count is a number of calls. It can be summed over seconds, and over views that share no call.
	Count Kind = iota
	// Level is a number of calls at the end of the second. It can be summed over views that share no call, but not over
	// seconds.
	Level
	// Peak is a maximum within the second. It cannot be summed: maxima belong to different instants, so their sum is
	// not the maximum. At best, as for InFlightMaxUpper, a sum over views is an upper bound.
	Peak
	// Time is a time in nanoseconds. Whether it can be summed depends on the column: rt_sum can be summed, but rt_min
	// and rt_max cannot.
	Time
	// CallTime is a number of call-seconds, in nanoseconds. Divided by one second, it is an average number of calls. It
	// can be summed over seconds, and over views that share no call.
	CallTime
)

// Columns returns a Column for each number of a [MetricNode], in the order of display. The caller owns the slice.
// Callers that need the columns often should keep the slice, because each call of Columns creates a new one.
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
			Name: "in_flight_max_upper", Help: "Upper bound of the maximum number of calls in flight in the second",
			Kind: Peak, Detail: true,
			At: func(m *MetricNode) *int64 { return &m.InFlightMaxUpper },
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
