package seconds

import (
	"math"

	"github.com/windowstat/windowstat/exporter/internal/runs"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// Log is the part of a metric log that [Resources] reads. metriclog.Writer implements it.
type Log interface {
	// Logged calls f with the records in [from, to), which are Unix times, in ascending order of seconds. It stops when
	// f returns false. A record contains Start and the fields that metrics with [table.Second].Logged read; other
	// fields are zero. A second without events has no record. The record is valid only during the call. The log skips
	// and counts rows that it cannot read.
	Logged(from, to int64, f func(resource string, m *node.MetricNode) bool)
	// Runs returns the processes that recorded the seconds of the log.
	Runs() *runs.File
}

// emitLogged writes the seconds of earlier processes in [from, to), up to the limit, and at least one. It returns the
// first second that it did not emit, and the number of seconds that the limit leaves.
//
// The rows of one second are read one by one, so the size of a second is known only after its last row. emitLogged
// therefore estimates the size of the buffered seconds from the number of resources and the longest label (see fits).
// If the estimate exceeds the limit, it flushes the buffer, which yields the exact size so far, or drops the newest
// second.
func (r *Resources) emitLogged(s *Selection, from, to int64, limit Limit, sink Sink) (reached, left int64) {
	out := &counter{Sink: sink}
	rows := NewFiller(r.namespace, r.log.Runs(), s, from, math.MaxInt, out)
	one, longest := r.size(s, &r.families[resources]).whole, 0 // size of a second without its label; longest label
	fits := func(seconds int) bool {
		n := seconds * max(len(rows.series), 1)
		size := out.Add(Size{n * one.Samples, n * (one.Bytes + one.Samples*longest)}).Add(r.runSize())
		return size.Samples <= limit.Samples && size.Bytes <= limit.Bytes
	}
	begun := int64(0) // number of seconds whose rows were read
	// end is called after the last row of a second. It drops this second if its resources exceed the limit, and reports
	// whether another second may begin.
	end := func() bool {
		n := len(rows.present)
		if begun > 1 && !fits(n) {
			reached, rows.present = rows.last(), rows.present[:n-1]
			begun--
			return false
		}
		if begun > 0 && !fits(n+1) { // flush now: most of the buffered seconds may be idle
			rows.Flush()
			n = 0
		}
		return begun == 0 || begun < limit.Seconds && fits(n+1)
	}
	reached = to
	r.log.Logged(from-r.line.History(), to, func(resource string, m *node.MetricNode) bool {
		if at := m.Start.Unix(); at >= rows.from && at > rows.last() {
			if !end() {
				reached = min(reached, at)
				return false
			}
			begun++
		}
		longest = max(longest, labelBytes("resource", resource))
		rows.Add(resource, m)
		return true
	})
	if reached == to {
		end()
	}
	rows.Flush()
	used := max(float64(out.Samples)/float64(max(limit.Samples, 1)), float64(out.Bytes)/float64(max(limit.Bytes, 1)))
	return reached, max(min(limit.Seconds-begun, int64(float64(limit.Seconds)*(1-used))), 0)
}

// counter is a Sink that counts the samples that it forwards.
type counter struct {
	Sink
	Size
	line int // approximate length of a line of the series
}

// Series implements [Sink].
func (c *counter) Series(f *table.Family, names, values []string) {
	c.line = lineBytes + len(f.Name)
	for i, value := range values {
		c.line += labelBytes(names[i], value)
	}
	c.Sink.Series(f, names, values)
}

// Value implements [Sink].
func (c *counter) Value(unix int64, v float64) {
	c.Size = c.Add(Size{1, c.line})
	c.Sink.Value(unix, v)
}
