package seconds

import (
	"math"
	"slices"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// emitter emits the samples of resources, one resource after the other, or of all inbound traffic.
type emitter struct {
	sink       Sink
	metrics    []*family
	sums       Temporality
	histogram  *table.Family // nil if not selected
	cumulative bool          // it is
	timed      bool          // rts is needed
	times      bool          // rts was read

	seen   records           // that were read
	kept   []node.MetricNode // memory for those that are not still
	before still             // as of before the seconds; not known if it makes no difference
	rts    distributions
	name   [1]string // of a resource

	// Of cumulative sums and histograms.
	began   int64       // the second since which they count
	counts  node.Counts // what sums had before the seconds
	counted bool        // counts is known
	sum     node.MetricNode
}

// records are seconds, and those of them that are not still.
type records struct{ seconds, told []node.MetricNode }

var resourceLabel = []string{"resource"}

// emitter makes one for the selected ones of some families.
func (r *Resources) emitter(s *Selection, f *families, sink Sink) *emitter {
	e := &emitter{sink: sink, metrics: f.selected(s), sums: s.Sums}
	e.timed = slices.ContainsFunc(e.metrics, func(m *family) bool { return m.RT != nil })
	if e.histogram = r.histogram(s, f); e.histogram != nil {
		e.timed, e.cumulative = true, e.histogram.Type == table.Histogram
	}
	return e
}

// read reads the seconds of a view in [from, to).
func (e *emitter) read(r *Resources, v *node.View, from, to int64) {
	all := v.AppendSeconds(e.seen.seconds[:0], from, to)
	e.before, e.counted, e.began = unknown, false, v.Began().Unix()
	if len(all) > 0 && (all[0].Idle() || e.cumulative || e.sums == Cumulative) {
		first := r.stats.Timeline().IndexFrom(all[0].Start)
		e.before = stillBefore(r.stats, v, first)
		if e.sums == Cumulative {
			e.counts, e.counted = v.CountsBefore(first)
		}
	}
	s := e.before
	told := s.told(e.kept[:0], all)
	if len(told) < len(all) {
		e.kept = told
	}
	e.seen = records{all, told}
	if e.times = e.timed && len(told) > 0; e.times {
		e.rts.read(r, v, from, to, e.cumulative)
	}
}

// resource emits records of a resource.
func (e *emitter) resource(name string, all records) {
	e.name[0] = name
	e.emit(resourceLabel, e.name[:], all)
}

// emit emits records with these labels, and the response times that were read with them.
func (e *emitter) emit(labels, values []string, all records) {
	for _, m := range e.metrics {
		seconds := all.told
		if m.Always {
			seconds = all.seconds
		}
		if len(seconds) == 0 {
			continue
		}
		e.sink.Series(&m.family, labels, values)
		if m.RT == nil {
			m.values(e.sink, seconds)
		} else if e.times {
			e.rts.values(e.sink, m.RT)
		}
		switch {
		case m.Sum == "":
		case e.sums == Single:
			e.sink.Series(&m.sum, labels, values)
			m.values(e.sink, seconds)
		case e.counted:
			e.start(&m.sum, labels, values)
			e.totals(m, seconds)
		}
	}
	if e.histogram != nil && e.times {
		if e.cumulative {
			e.start(e.histogram, labels, values)
			e.rts.points(e.sink, e.before, all.seconds)
		} else {
			e.sink.Series(e.histogram, labels, values)
			e.rts.singles(e.sink, all.told)
		}
	}
}

// start starts a cumulative series.
func (e *emitter) start(f *table.Family, labels, values []string) {
	e.sink.Series(f, labels, values)
	if sink, ok := e.sink.(Starter); ok {
		sink.Start(e.began)
	}
}

// totals emits the metric's sum at the end of each of the seconds given, and at the beginning of one that comes after those that have
// none, so that each second is the difference of two samples. The seconds between are idle.
func (e *emitter) totals(m *family, seconds []node.MetricNode) {
	past := e.before
	e.sum.Counts = e.counts
	emit := func(unix int64) {
		v, _ := m.Value(&e.sum)
		e.sink.Value(unix, v)
	}
	for i := range seconds {
		at := seconds[i].Start.Unix()
		if !m.Always && past.is(at-1) {
			emit(at)
		}
		past.see(&seconds[i])
		e.sum.Counts = e.sum.Add(seconds[i].Counts)
		emit(at + 1)
	}
}

// values emits the metric's samples of the seconds given.
func (m *family) values(sink Sink, seconds []node.MetricNode) {
	for i := range seconds {
		if v, ok := m.Value(&seconds[i]); ok {
			sink.Value(seconds[i].Start.Unix(), v)
		}
	}
}

// distributions are the response time histograms of consecutive seconds of one resource. Their memory is reused.
type distributions struct {
	hs        []node.Histogram
	unix      []int64 // of the seconds; 0 for one without a name
	before    node.Histogram
	missing   int  // histograms that are not kept any more, at the beginning
	hasBefore bool // before was read
}

// read reads the histograms that are kept of the seconds in [from, to), and with before also the sum of all earlier ones.
func (d *distributions) read(r *Resources, v *node.View, from, to int64, before bool) {
	from = max(from, to-r.kept, v.Since())
	n := int(max(to-from, 0))
	for len(d.hs) < n {
		d.hs = append(d.hs[:cap(d.hs)], node.Histogram{})
	}
	d.hs, d.unix = d.hs[:n], d.unix[:0]
	first := v.Histograms(from, d.hs)
	for i := from; i < to; i++ {
		unix := int64(0)
		if name, ok := r.stats.Timeline().Name(i); ok && i >= first {
			unix = name.Unix()
		}
		d.unix = append(d.unix, unix)
	}
	d.missing = int(max(first-from, 0))
	d.hasBefore = before && v.HistogramBefore(max(first, from), &d.before)
}

// values emits a sample of each second, computed from its histogram.
func (d *distributions) values(sink Sink, value func(*node.Histogram) float64) {
	for i := range d.hs {
		if h := &d.hs[i]; d.unix[i] != 0 && h.Count() > 0 {
			sink.Value(d.unix[i], value(h))
		}
	}
}

// singles emits the histogram of each of the seconds told, those that are not still; it is empty if no call ended in one.
func (d *distributions) singles(sink Sink, told []node.MetricNode) {
	for i, unix := range d.unix {
		for len(told) > 0 && told[0].Start.Unix() < unix {
			told = told[1:]
		}
		if len(told) > 0 && told[0].Start.Unix() == unix {
			sink.Histogram(unix, &d.hs[i])
		}
	}
}

// points emits the cumulative histogram at the end of each of the seconds that is not still, and at the beginning of one that
// comes after a still one, so that what ended in any second is the difference of two points. The past is as of before them.
func (d *distributions) points(sink Sink, past still, seconds []node.MetricNode) {
	if !d.hasBefore {
		return
	}
	for i := d.missing; i < len(d.hs); i++ {
		for len(seconds) > 0 && seconds[0].Start.Unix() < d.unix[i] {
			past.see(&seconds[0])
			seconds = seconds[1:]
		}
		at := d.unix[i]
		told, begins := false, false
		if at != 0 && len(seconds) > 0 {
			begins = past.is(at - 1)
			told = !past.see(&seconds[0])
		}
		if told && begins {
			sink.Histogram(at, &d.before)
		}
		d.before.Add(&d.hs[i])
		if told {
			sink.Histogram(at+1, &d.before)
		}
	}
}

// stillFor is how many seconds before an idle one must have been idle, too, until a series stops.
const stillFor = 60

// still knows in which seconds a resource is still: nothing happened in the second nor in the minute before it, by the names of
// the seconds, and nothing was in flight. It is the last second that was not idle, or the one before the first that is known. Of
// a still second only the metrics with [table.Second].Always are sent. Which seconds are still depends on what happened before
// them and on nothing else, so it is the same for every reader, at any time.
type still int64

// unknown is a still without a past: the next second begins one.
const unknown still = math.MinInt64

// see takes notice of a second, and reports whether it is still. Seconds must ascend.
func (s *still) see(m *node.MetricNode) bool {
	at := m.Start.Unix()
	if *s == unknown {
		*s = still(at - 1)
	}
	if !m.Idle() {
		*s = max(*s, still(at))
	}
	return s.is(at)
}

// is reports whether an idle second is still.
func (s *still) is(unix int64) bool { return unix-stillFor > int64(*s) }

// told appends the seconds that are not still. If that is all of them it returns those, and appends nothing.
func (s *still) told(dst, all []node.MetricNode) []node.MetricNode {
	for i := range all {
		if !s.see(&all[i]) {
			continue
		}
		dst = append(dst, all[:i]...)
		for _, m := range all[i+1:] {
			if !s.see(&m) {
				dst = append(dst, m)
			}
		}
		return dst
	}
	return all
}

// stillBefore is the past of a view at the second with this index. A second without a name was not handed out, and is passed
// over here as well.
func stillBefore(c *collector.Collector, v *node.View, index int64) still {
	for {
		index = v.LastActive(index)
		if index < v.Since() {
			return still(v.Began().Unix() - 1)
		}
		if name, ok := c.Timeline().Name(index); ok {
			return still(name.Unix())
		}
	}
}
