package metriclog

import (
	"fmt"
	"strconv"
	"strings"
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

// Row is one line of the log. Counts are as in [node.MetricNode].
type Row struct {
	Start                                         time.Time // in UTC
	Resource                                      string    // as it was written: | and control characters are _
	Pass, Block, Success, Exception, OccupiedPass int64
	RT                                            time.Duration // average, in whole milliseconds
	Concurrency                                   int64
}

// Parse reads a line, with or without its newline. The error says which field is wrong.
func Parse(line string) (Row, error) {
	fields := strings.Split(strings.TrimSuffix(line, "\n"), "|")
	const want = 11
	if len(fields) != want {
		return Row{}, fmt.Errorf("metriclog: %d fields in line %.80q, want %d", len(fields), line, want)
	}
	row := Row{Resource: fields[2]}
	var ms, rt int64
	for i, to := range []*int64{
		0: &ms, 3: &row.Pass, 4: &row.Block, 5: &row.Success, 6: &row.Exception, 7: &rt, 8: &row.OccupiedPass, 9: &row.Concurrency,
	} {
		if to == nil {
			continue
		}
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return Row{}, fmt.Errorf("metriclog: field %d of line %.80q: %w", i+1, line, err)
		}
		*to = n
	}
	row.Start = time.UnixMilli(ms).UTC()
	row.RT = time.Duration(rt) * time.Millisecond
	return row, nil
}
