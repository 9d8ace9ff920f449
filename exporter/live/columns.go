package live

import (
	"strconv"
	"time"

	"github.com/windowstat/windowstat/node"
)

// columns are the numbers of a row: columns of the record of a second, then what is derived from its response times. Their
// names are sent once, and the script finds by them what it shows.
type columns struct {
	list    []node.Column
	names   []string
	untimed bool // response times are not known
}

// columnsOf are the columns of a record that are wanted, and those that are derived.
func columnsOf(wanted func(*node.Column) bool, untimed bool) *columns {
	c := &columns{untimed: untimed}
	for _, x := range node.Columns() {
		if wanted(&x) {
			c.list, c.names = append(c.list, x), append(c.names, x.Name)
		}
	}
	c.names = append(c.names, rtAvg, rtP99)
	return c
}

// The columns that are derived from response times.
const (
	rtAvg = "rt_avg"
	rtP99 = "rt_p99"
)

// inFeed are the columns that each viewer gets of each resource in each second: the main counts, and what else the page
// shows.
func inFeed(c *node.Column) bool {
	return c.Kind == node.Count && !c.Detail || c.Kind == node.CallTime || c.Name == "in_flight_max"
}

// append appends the numbers of a second, each behind a comma. Times are in microseconds, that of all calls in
// flight together as well, and -1 where there is none.
func (c *columns) append(b []byte, m *node.MetricNode, p99 time.Duration) []byte {
	for i := range c.list {
		x := &c.list[i]
		if v := *x.At(m); x.Kind == node.Time || x.Kind == node.CallTime {
			b = c.time(b, time.Duration(v), x.None == nil || !x.None(m))
		} else {
			b = strconv.AppendInt(append(b, ','), v, 10)
		}
	}
	return c.time(c.time(b, m.AvgRT(), m.Complete > 0), p99, p99 >= 0)
}

func (c *columns) time(b []byte, v time.Duration, known bool) []byte {
	if c.untimed || !known {
		return append(b, ",-1"...)
	}
	return strconv.AppendInt(append(b, ','), v.Microseconds(), 10)
}

// none is a response time that is not known.
const none = -time.Microsecond
