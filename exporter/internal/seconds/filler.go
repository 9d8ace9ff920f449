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
	emitter
	rows
	whole   emitter // emits it, once there was any
	inbound bool
	run     table.Family
	of      *runs.File
	most    int // seconds of resources to emit at a time
	size    int // seconds of resources buffered
}

// NewFiller makes a Filler for the seconds from the Unix time from on. It also needs the rows of the hour before, which name
// the resources and are not emitted. Beside the metrics of the log it emits the run of each second that of has one for.
//
// The sink gets about most seconds of resources at a time, series by series, and then the same series again with later seconds.
func NewFiller(namespace string, of *runs.File, from int64, most int, sink Sink) *Filler {
	f := &Filler{rows: newRows(Selection{}, from), run: table.Run(namespace), of: of, most: most}
	f.sink, f.whole.sink = sink, sink
	logged := families{metrics: newFamilies(namespace, table.Seconds(), isLogged)}
	inbound := families{metrics: newFamilies(namespace, table.InboundSeconds(), isLogged)}
	f.metrics, f.whole.metrics = logged.selected(&f.only), inbound.selected(&f.only)
	return f
}

// Select narrows what is emitted to a selection, before the first row. There are no cumulative sums and no histograms. It reports
// false if the log has none of its metrics.
func (f *Filler) Select(s *Selection) bool {
	f.only = *s
	if s.Sums == Single {
		f.sums, f.whole.sums = Single, Single
	}
	for _, list := range []*[]*family{&f.metrics, &f.whole.metrics} {
		*list = slices.DeleteFunc(*list, func(m *family) bool { return len(s.Metrics) > 0 && !slices.Contains(s.Metrics, m.family.Name) })
	}
	return len(f.metrics)+len(f.whole.metrics) > 0
}

// Buffered returns the buffered seconds, about how many samples they have, and the last one of them.
func (f *Filler) Buffered() (seconds, samples int, last int64) {
	return len(f.present), (f.size+len(f.series))*len(f.metrics) + len(f.present)*(len(f.whole.metrics)+1), f.last()
}

// Add adds a row. Rows must ascend; one out of order is skipped. The record is copied. The rows of all inbound traffic tell in
// which seconds the process ran; they are emitted under names of their own, unless there was none. Add reports whether it has
// emitted the rows of all earlier seconds.
func (f *Filler) Add(resource string, m *node.MetricNode) (emitted bool) {
	if at := m.Start.Unix(); at >= f.from && at > f.last() {
		if f.size += max(len(f.series), 1); f.size >= f.most {
			emitted = len(f.present) > 0
			f.Flush()
		}
	}
	f.add(resource, m)
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
	for _, name := range slices.Sorted(maps.Keys(f.series)) {
		x := f.series[name]
		f.resource(name, f.fill(x, maxIdle))
		if n := len(x.rows); n > 0 {
			x.before = x.rows[n-1].Start.Unix()
		}
		x.rows = x.rows[:0]
		if last-x.before > int64(maxIdle/time.Second) {
			delete(f.series, name)
		}
	}
	if f.inbound = f.inbound || f.total.any(); f.inbound {
		f.whole.emit(nil, nil, f.fill(f.total, maxIdle))
	}
	f.sink.Series(&f.run, nil, nil)
	for _, second := range f.present {
		if id := f.of.ID(second); id != 0 {
			f.sink.Value(second, float64(id))
		}
	}
	f.total.rows = f.total.rows[:0]
	f.present, f.size, f.from = f.present[:0], 0, last+1
}
