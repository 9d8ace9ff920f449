package seconds

import (
	"math"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/runs"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// Log is what [Resources] need of a metric log; metriclog.Writer implements it.
type Log interface {
	// Logged calls f with the records in [from, to), Unix times, ascending by second, until f returns false.
	// A record has the Start and the fields that metrics with [table.Second].Logged read, and zero elsewhere. A second without
	// events has no record. The record is valid during the call. The log counts what it cannot read and leaves it out.
	Logged(from, to int64, f func(resource string, m *node.MetricNode) bool)
	// Runs returns the processes that counted the seconds of the log.
	Runs() *runs.File
}

// emitLogged emits the seconds of earlier processes in [from, to), as many as the limit allows, and at least one. It returns the second
// before which it stopped, and how many seconds the limit has left.
func (r *Resources) emitLogged(s *Selection, from, to int64, limit Limit, sink Sink) (reached, left int64) {
	out := &counter{Sink: sink}
	rows := NewFiller(r.namespace, r.log.Runs(), s, from, math.MaxInt, out)
	one, longest := r.size(s, &r.families[resources]).whole, 0 // size of a second of a resource, without its label
	fits := func(seconds int) bool {
		n := seconds * max(len(rows.series), 1)
		size := out.Add(Size{n * one.Samples, n * (one.Bytes + one.Samples*longest)}).Add(r.runSize())
		return size.Samples <= limit.Samples && size.Bytes <= limit.Bytes
	}
	begun := int64(0) // seconds, the last of them with all its rows
	// end drops the last second if more resources have come in it than the limit allows, and reports whether another one may begin.
	end := func() bool {
		n := len(rows.present)
		if begun > 1 && !fits(n) {
			reached, rows.present = rows.last(), rows.present[:n-1]
			begun--
			return false
		}
		if begun > 0 && !fits(n+1) { // as it is, most may be idle
			rows.Flush()
			n = 0
		}
		return begun == 0 || begun < limit.Seconds && fits(n+1)
	}
	reached = to
	r.log.Logged(from-int64(r.stats.History()/time.Second), to, func(resource string, m *node.MetricNode) bool {
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

// counter is a Sink that counts what it passes on.
type counter struct {
	Sink
	Size
	line int // length of a line of the series, about
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
