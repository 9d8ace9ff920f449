package seconds

import (
	"maps"
	"slices"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/runs"
	"github.com/windowstat/windowstat/node"
)

// Filler turns the rows of a metric log into the samples that a scraper would have received. It emits the metrics that
// the log has, under the same names and labels, and adds the idle seconds, which have no row.
//
// An idle second of a resource counts as zero under two conditions: another row of that second shows that the process
// ran, and the resource had a row in the hour before. After a minute of idleness only the passes of the resource are
// emitted.
//
// Create a Filler with [NewFiller]. It is not safe for concurrent use. Its memory is bounded by the number of rows that
// are emitted together.
type Filler struct {
	writer   *RowWriter
	inbound  bool // a row with inbound traffic was added
	runs     *runs.File
	selected *Selection

	from       int64              // first second to emit; earlier rows only name resources and show idleness
	present    []int64            // buffered seconds with at least one row, ascending
	series     map[string]*series // by resource; [collector.InboundTotal] is all inbound traffic
	maxSeconds int                // number of seconds of resources to emit at a time
	size       int                // number of buffered seconds of resources
}

// series holds the buffered rows of one resource.
type series struct {
	past Past // before rows
	rows []node.MetricNode
}

// NewFiller returns a Filler for the selected samples of the seconds at or after the Unix time from. The caller must
// also add the rows of the hour before from. They name the resources and are not emitted.
//
// The Filler also emits the run of each second for which processes has one. It emits no cumulative sums and no
// histograms.
//
// The sink receives about maxSeconds seconds of resources at a time, series by series. After that it receives the same
// series again with later seconds.
func NewFiller(namespace string, processes *runs.File, s *Selection, from int64, maxSeconds int, sink Sink) *Filler {
	return NewRowFamilies(namespace).Filler(processes, s, from, maxSeconds, sink)
}

// Filler returns a [Filler] of these metrics.
func (f *RowFamilies) Filler(processes *runs.File, s *Selection, from int64, maxSeconds int, sink Sink) *Filler {
	return &Filler{
		writer: f.Writer(s, sink), runs: processes, selected: s,
		from: from, maxSeconds: maxSeconds, series: map[string]*series{},
	}
}

// Buffered returns the number of buffered seconds, their approximate number of samples, and the last buffered second.
func (f *Filler) Buffered() (seconds, samples int, last int64) {
	return len(f.present), (f.size+len(f.series))*len(f.writer.emitters[resources].metrics) + len(f.present), f.last()
}

// last returns the last buffered second, or 0 if the buffer is empty.
func (f *Filler) last() int64 {
	if n := len(f.present); n > 0 {
		return f.present[n-1]
	}
	return 0
}

// Add adds a row. It copies the record. Rows must ascend; Add skips a row that is out of order.
//
// All rows show in which seconds the process ran, including rows that are not selected and rows of all inbound traffic.
// The rows of all inbound traffic are emitted under their own names, unless all of them are idle.
//
// Add reports whether it has emitted the rows of all earlier seconds.
func (f *Filler) Add(resource string, m *node.MetricNode) (emitted bool) {
	at := m.Start.Unix()
	earlier := at < f.from
	switch last := f.last(); {
	case !earlier && at > last:
		if f.size += max(len(f.series), 1); f.size >= f.maxSeconds {
			emitted = len(f.present) > 0
			f.Flush()
		}
		f.present = append(f.present, at)
	case !earlier && at < last:
		return false
	}
	if total := resource == collector.InboundTotal; total && !f.selected.total() ||
		!total && !f.selected.wants(resource) {
		return emitted
	}
	x := f.series[resource]
	if x == nil {
		x = &series{past: ActiveAt(0)}
		f.series[resource] = x
	}
	if earlier {
		x.past.observe(m)
	} else if n := len(x.rows); n == 0 || m.Start.After(x.rows[n-1].Start) {
		x.rows = append(x.rows, *m)
	}
	return emitted
}

// maxIdle is the longest idle time of a resource. A Collector retires a resource after the same time.
const maxIdle = collector.DefaultRetireAfter

// Flush emits the buffered rows. The caller must call it after the last Add.
func (f *Filler) Flush() {
	if len(f.present) == 0 {
		return
	}
	last := f.last()
	names := slices.Sorted(maps.Keys(f.series))
	if i, ok := slices.BinarySearch(names, collector.InboundTotal); ok {
		names = append(slices.Delete(names, i, i+1), collector.InboundTotal) // last, as in the log
	}
	labels, values := []string{"resource"}, make([]string, 1)
	for _, name := range names {
		x := f.series[name]
		if values[0] = name; name != collector.InboundTotal {
			f.writer.Write(false, &x.past, f.present, x.rows, labels, values)
		} else if f.inbound = f.inbound || slices.ContainsFunc(x.rows, active); f.inbound {
			f.writer.Write(true, &x.past, f.present, x.rows, nil, nil)
		} else if n := len(x.rows); n > 0 {
			x.past.before = x.rows[n-1].Start.Unix()
		}
		x.rows = x.rows[:0]
		if last-x.past.before > int64(maxIdle/time.Second) {
			delete(f.series, name)
		}
	}
	f.writer.WriteRun(f.present, f.runs.ID, nil, nil)
	f.present, f.size, f.from = f.present[:0], 0, last+1
}

// active reports whether the record of a second has any activity.
func active(m node.MetricNode) bool { return !m.Idle() }
