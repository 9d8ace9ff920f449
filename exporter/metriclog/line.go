package metriclog

import (
	"strconv"
	"time"

	"github.com/windowstat/windowstat/node"
)

// head is what all lines of a second begin with.
func head(start time.Time) []byte {
	b := strconv.AppendInt(nil, start.UnixMilli(), 10)
	b = append(b, '|')
	b = start.AppendFormat(b, time.DateTime)
	return append(b, '|')
}

// appendLine appends the row of one resource.
func appendLine(b, head []byte, resource string, m *node.MetricNode) []byte {
	b = append(b, head...)
	b = appendName(b, resource)
	for _, v := range [...]int64{
		m.Pass, m.Block, m.Complete, m.Exception, m.AvgRT().Milliseconds(), m.OccupiedPass, m.InFlightMax,
	} {
		b = append(b, '|')
		b = strconv.AppendInt(b, v, 10)
	}
	return append(b, "|0\n"...)
}

// appendName appends a name in which nothing can end a field or a line.
func appendName(b []byte, name string) []byte {
	for i := range len(name) {
		if c := name[i]; c < ' ' || c == '|' || c == 0x7f {
			b = append(b, '_')
		} else {
			b = append(b, c)
		}
	}
	return b
}
