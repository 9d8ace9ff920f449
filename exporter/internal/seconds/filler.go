package seconds

import (
	"maps"
	"slices"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/runs"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// Filler emits the rows of a metric log as the samples that a scraper would have got: the metrics that the log has, under the
// same names and labels, with the idle seconds that have no row. An idle second of a resource is zero if another row of that
// second shows that the process ran, and the resource had a row in the hour before; after a minute only its passes are.
//
// It must be made with [NewFiller], and is not safe for concurrent use. Its memory is bounded by the rows that are emitted
// together.
type Filler struct {
	sink     Sink
	emitters [kinds]emitter
	inbound  bool // there was any inbound traffic
	run      table.Family
	of       *runs.File
	only     *Selection

	from    int64              // earlier rows show which resources are known, and which were idle
	present []int64            // the buffered seconds, those with any row, ascending
	series  map[string]*series // by resource; [collector.InboundTotal] is all inbound traffic
	most    int                // seconds of resources to emit at a time
	size    int                // seconds of resources buffered
}

// series are the buffered rows of one resource.
type series struct {
	before int64 // the last second with a row before those in rows, 0 if there is none
	still  still // as of before rows
	rows   []node.MetricNode
}

// NewFiller makes a Filler for the selected samples of the seconds from the Unix time from on. It also needs the rows of the hour
// before, which name the resources and are not emitted. Beside the metrics of the log it emits the run of each second that of has one
// for. There are no cumulative sums and no histograms.
//
// The sink gets about most seconds of resources at a time, series by series, and then the same series again with later seconds.
func NewFiller(namespace string, of *runs.File, s *Selection, from int64, most int, sink Sink) *Filler {
	f := &Filler{sink: sink, run: table.Run(namespace), of: of, only: s, from: from, most: most, series: map[string]*series{}}
	for kind, logged := range newFamilies(namespace, func(m *table.Second) bool { return m.Logged }) {
		f.emitters[kind] = logged.emitter(s, sink)
	}
	return f
}

// Buffered returns the buffered seconds, about how many samples they have, and the last one of them.
func (f *Filler) Buffered() (seconds, samples int, last int64) {
	return len(f.present), (f.size+len(f.series))*len(f.emitters[resources].metrics) + len(f.present), f.last()
}

// last returns the last buffered second; 0 if there is none.
func (f *Filler) last() int64 {
	if n := len(f.present); n > 0 {
		return f.present[n-1]
	}
	return 0
}

// Add adds a row. Rows must ascend; one out of order is skipped. The record is copied. The rows of all inbound traffic tell in
// which seconds the process ran; they are emitted under names of their own, unless there was none. So does a row that is not
// selected. Add reports whether it has emitted the rows of all earlier seconds.
func (f *Filler) Add(resource string, m *node.MetricNode) (emitted bool) {
	at := m.Start.Unix()
	earlier := at < f.from
	switch last := f.last(); {
	case !earlier && at > last:
		if f.size += max(len(f.series), 1); f.size >= f.most {
			emitted = len(f.present) > 0
			f.Flush()
		}
		f.present = append(f.present, at)
	case !earlier && at < last:
		return false
	}
	if total := resource == collector.InboundTotal; total && !f.only.total() || !total && !f.only.wants(resource) {
		return emitted
	}
	x := f.series[resource]
	if x == nil {
		x = &series{still: unknown}
		f.series[resource] = x
	}
	if earlier {
		x.still.see(m)
		x.before = max(x.before, at)
	} else if n := len(x.rows); n == 0 || m.Start.After(x.rows[n-1].Start) {
		x.rows = append(x.rows, *m)
	}
	return emitted
}

// maxIdle is how long a resource may be idle: a Collector retires it after that, too.
const maxIdle = collector.DefaultRetireAfter

// Flush emits the buffered rows. It must be called at the end.
func (f *Filler) Flush() {
	if len(f.present) == 0 {
		return
	}
	last := f.last()
	names := slices.Sorted(maps.Keys(f.series))
	if i, ok := slices.BinarySearch(names, collector.InboundTotal); ok {
		names = append(slices.Delete(names, i, i+1), collector.InboundTotal) // as in the log
	}
	labels, values := []string{"resource"}, make([]string, 1)
	for _, name := range names {
		x := f.series[name]
		if values[0] = name; name != collector.InboundTotal {
			f.emit(&f.emitters[resources], x, labels, values)
		} else if f.inbound = f.inbound || slices.ContainsFunc(x.rows, func(m node.MetricNode) bool { return !m.Idle() }); f.inbound {
			f.emit(&f.emitters[inbound], x, nil, nil)
		}
		if n := len(x.rows); n > 0 {
			x.before = x.rows[n-1].Start.Unix()
		}
		x.rows = x.rows[:0]
		if last-x.before > int64(maxIdle/time.Second) {
			delete(f.series, name)
		}
	}
	f.sink.Series(&f.run, nil, nil)
	for _, second := range f.present {
		if id := f.of.ID(second); id != 0 {
			f.sink.Value(second, float64(id))
		}
	}
	f.present, f.size, f.from = f.present[:0], 0, last+1
}

// emit emits the buffered seconds of a resource, with idle ones, and moves on behind them. An idle second has no row: it is zero if
// another resource has a row in it, which shows that the process ran, and the resource is known from an earlier row. A resource that was
// idle for longer than maxIdle has ended.
func (f *Filler) emit(e *emitter, of *series, labels, values []string) {
	e.seconds = e.seconds[:0]
	rest, last := of.rows, of.before
	for _, second := range f.present {
		switch {
		case len(rest) > 0 && rest[0].Start.Unix() == second:
			e.seconds = append(e.seconds, rest[0])
			rest, last = rest[1:], second
		case last != 0 && second-last <= int64(maxIdle/time.Second):
			e.seconds = append(e.seconds, node.MetricNode{Start: time.Unix(second, 0)})
		}
	}
	e.see(&of.still)
	e.emit(labels, values)
}
