package node

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
