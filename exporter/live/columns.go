package live

import (
	"time"

	"github.com/windowstat/windowstat/node"
)

// columns are the numbers of a second: columns of its record, then what is derived from its response times. Their names are
// sent once, and the script finds by them what it shows.
type columns struct {
	list    []node.Column
	names   []string
	untimed bool // response times are not known
}

// The columns that are derived from response times.
const (
	rtAvg = "rt_avg"
	rtP99 = "rt_p99"
)

// inRow are the columns that a row of the table has beside those of a second: what went wrong lately, and the p99 that is usual.
var inRow = []string{"exception_lately", "block_lately", "rt_usual"}

// newColumns are the columns that the page shows: the main counts, and how many calls are in flight on average.
func newColumns(untimed bool) *columns {
	c := &columns{untimed: untimed}
	for _, x := range node.Columns() {
		if x.Kind == node.Count && !x.Detail || x.Kind == node.CallTime {
			c.list, c.names = append(c.list, x), append(c.names, x.Name)
		}
	}
	c.names = append(c.names, rtAvg, rtP99)
	return c
}

// append appends the numbers of a second. Times are in microseconds, that of all calls in flight together as well, and -1 where
// there is none.
func (c *columns) append(to []int64, m *node.MetricNode, p99 time.Duration) []int64 {
	for i := range c.list {
		x := &c.list[i]
		v := *x.At(m)
		if x.Kind == node.CallTime {
			v = c.time(time.Duration(v))
		}
		to = append(to, v)
	}
	avg := none
	if m.Complete > 0 {
		avg = m.AvgRT()
	}
	return append(to, c.time(avg), c.time(p99))
}

func (c *columns) time(v time.Duration) int64 {
	if c.untimed {
		v = none
	}
	return v.Microseconds()
}

// none is a time that is not known.
const none = -time.Microsecond
