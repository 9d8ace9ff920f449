package live

import (
	"time"

	"github.com/windowstat/windowstat/node"
)

// columns defines the numbers of a second in a message: columns of its record, then values derived from its response
// times. The names are sent once, and the script finds the numbers by name:
//
//	columns  ["pass", "block", …, "in_flight_avg", "rt_avg", "rt_p99"]
//	second   [1767323045, 12, 0, …, 180000, 15000, 41000]
type columns struct {
	list             []node.Column
	names            []string // of list, then of the derived columns
	durationsUnknown bool
}

// The columns that are derived from response times.
const (
	rtAvg = "rt_avg"
	rtP99 = "rt_p99"
)

// newColumns returns the columns of the page: the main counts, and the average number of calls in flight.
func newColumns(durationsUnknown bool) *columns {
	c := &columns{durationsUnknown: durationsUnknown}
	for _, x := range node.Columns() {
		if x.Kind == node.Count && !x.Detail || x.Kind == node.CallTime {
			c.list, c.names = append(c.list, x), append(c.names, x.Name)
		}
	}
	c.names = append(c.names, rtAvg, rtP99)
	return c
}

// appendValues appends the numbers of a second. Times are in microseconds, also the call-seconds; -1 means no value.
func (c *columns) appendValues(to []int64, m *node.MetricNode, p99 time.Duration) []int64 {
	for i := range c.list {
		x := &c.list[i]
		v := *x.At(m)
		if x.Kind == node.CallTime {
			if v > 0 { // a fraction of a microsecond is not 0
				v = max(v, int64(time.Microsecond))
			}
			v = c.micros(time.Duration(v))
		}
		to = append(to, v)
	}
	avg := noDuration
	if m.Complete > 0 {
		avg = m.AvgRT()
	}
	return append(to, c.micros(avg), c.micros(p99))
}

// micros converts a duration to microseconds. It returns -1 if durations are unknown.
func (c *columns) micros(d time.Duration) int64 {
	if c.durationsUnknown {
		d = noDuration
	}
	return d.Microseconds()
}

// noDuration represents an unknown duration; it is -1 in a message.
const noDuration = -time.Microsecond
