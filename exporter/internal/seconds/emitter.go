package seconds

import (
	"slices"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// emitter writes the samples of consecutive seconds of one view to a [Sink]: first the seconds of one resource, then
// those of the next resource, or the seconds of all inbound traffic. The records come from the history (see read) or
// from a log (see [Filler]). setStates then marks the seconds to omit. The records and the states are computed once and
// used for all metrics, because a second has a dozen metrics.
type emitter struct {
	sink      Sink
	metrics   []*family
	sums      Temporality
	histogram *table.Family // nil if not selected
	timed     bool          // a selected metric needs histograms

	resource   *collector.Resource // for its exemplars; nil without any
	seconds    []node.MetricNode
	states     []state // parallel to seconds
	active     bool    // at least one second is not omitted
	histograms distributions

	// For cumulative sums and histograms only.
	began   int64       // Unix time at which they start to count
	counts  node.Counts // totals before the first second
	counted bool        // counts was read
	sum     node.MetricNode
}

// state says whether a second is emitted. Metrics with [table.Second].Always ignore it.
type state byte

const (
	omitted state = iota // idle for more than idleLimit
	sent
	resumed // sent, and the second before was omitted
)

// emitter returns an emitter for the selected metrics of the families.
func (f *families) emitter(s *Selection, sink Sink) emitter {
	e := emitter{sink: sink, metrics: f.selected(s), sums: s.Sums, histogram: f.histograms[s.Histogram]}
	e.timed = e.histogram != nil || slices.ContainsFunc(e.metrics, func(m *family) bool { return m.RT != nil })
	return e
}

// read loads the seconds of a view in [from, to).
func (e *emitter) read(r *Resources, v *node.View, from, to int64) {
	e.seconds = v.AppendSeconds(e.seconds[:0], from, to)
	past, cumulative := unknown, e.histogram != nil && e.histogram.Type == table.Histogram
	e.counted, e.began = false, v.Began().Unix()
	// The past affects only seconds that begin idle, and cumulative samples.
	if len(e.seconds) > 0 && (e.seconds[0].Idle() || cumulative || e.sums == Cumulative) {
		first := r.stats.Timeline().IndexAtOrAfter(e.seconds[0].Start)
		past = idlenessBefore(r.stats, v, first)
		if e.sums == Cumulative {
			e.counts, e.counted = v.CountsBefore(first)
		}
	}
	if e.setStates(&past); e.timed && e.active {
		e.histograms.read(r, v, from, to, cumulative, e.seconds)
	}
}

// setStates sets the states of the loaded seconds. past holds the idleness before the first second; setStates updates
// it to the idleness after the last.
func (e *emitter) setStates(past *idleness) {
	e.states, e.active = e.states[:0], false
	for i := range e.seconds {
		now := sent
		if past.suppressed(e.seconds[i].Start.Unix() - 1) {
			now = resumed
		}
		if past.observe(&e.seconds[i]) {
			now = omitted
		}
		e.states, e.active = append(e.states, now), e.active || now != omitted
	}
}

// emit writes all selected metrics of the loaded seconds under the labels.
func (e *emitter) emit(labels, values []string) {
	if len(e.seconds) == 0 {
		return
	}
	for _, m := range e.metrics {
		if !m.Always && !e.active {
			continue
		}
		e.sink.Series(&m.family, labels, values)
		e.values(m)
		switch {
		case m.Sum == "":
		case e.sums == Single:
			e.sink.Series(&m.sum, labels, values)
			e.values(m)
		case e.counted:
			e.start(&m.sum, labels, values)
			e.totals(m)
		}
	}
	switch {
	case e.histogram == nil || !e.active:
	case e.histogram.Type == table.Histogram:
		e.start(e.histogram, labels, values)
		e.points()
	default:
		e.sink.Series(e.histogram, labels, values)
		e.singles()
		e.exemplars()
	}
}

// exemplars passes the exemplars of the loaded seconds to sinks that implement [Exemplars]. A resource keeps the latest
// exemplar of each bucket only, so older seconds have fewer.
func (e *emitter) exemplars() {
	sink, ok := e.sink.(Exemplars)
	if !ok {
		return
	}
	first, last := e.seconds[0].Start, e.seconds[len(e.seconds)-1].Start
	list := slices.DeleteFunc(e.resource.Exemplars(), func(x collector.Exemplar) bool {
		return x.At.Before(first) || x.At.Unix() > last.Unix()
	})
	if len(list) > 0 {
		sink.Exemplars(list)
	}
}

// start begins a cumulative series. It passes the start time of the series to sinks that implement [Starter].
func (e *emitter) start(f *table.Family, labels, values []string) {
	e.sink.Series(f, labels, values)
	if sink, ok := e.sink.(Starter); ok {
		sink.Start(e.began)
	}
}

// values writes one sample of the metric for each second that is not omitted. A response time metric has no sample in a
// second without a completed call.
func (e *emitter) values(m *family) {
	for i := range e.seconds {
		second := &e.seconds[i]
		if !m.Always && e.states[i] == omitted {
			continue
		}
		if m.RT == nil {
			if v, ok := m.Value(second); ok {
				e.sink.Value(second.Start.Unix(), v)
			}
		} else if h := e.histograms.of(i); h != nil && h.Count() > 0 {
			e.sink.Value(second.Start.Unix(), m.RT(h))
		}
	}
}

// totals writes the running sum of the metric at the end of each second that is not omitted. For a second after an
// omitted one it also writes the sum at the beginning. The count of any second is therefore the difference of two
// samples.
func (e *emitter) totals(m *family) {
	e.sum.Counts = e.counts
	emit := func(unix int64) {
		v, _ := m.Value(&e.sum)
		e.sink.Value(unix, v)
	}
	for i := range e.seconds {
		at := e.seconds[i].Start.Unix()
		if !m.Always && e.states[i] == resumed {
			emit(at)
		}
		e.sum.Counts = e.sum.Add(e.seconds[i].Counts)
		if m.Always || e.states[i] != omitted {
			emit(at + 1)
		}
	}
}

// points writes the cumulative histogram at the times at which totals writes the sum of a metric. It writes nothing if
// the histogram of the earlier seconds is unavailable.
func (e *emitter) points() {
	d := &e.histograms
	if !d.hasBefore {
		return
	}
	next := d.missing
	before := func(position int) *node.Histogram {
		for ; next < position; next++ { // includes seconds without a name
			d.before.Add(&d.hs[next])
		}
		return &d.before
	}
	for i := range e.seconds {
		at, position := e.seconds[i].Start.Unix(), d.positions[i]
		if d.of(i) == nil {
			continue
		}
		if e.states[i] == resumed {
			e.sink.Histogram(at, before(position))
		}
		if e.states[i] != omitted {
			e.sink.Histogram(at+1, before(position+1))
		}
	}
}

// singles writes the histogram of each second that is not omitted. The histogram is empty if no call ended in the
// second.
func (e *emitter) singles() {
	for i := range e.seconds {
		if h := e.histograms.of(i); h != nil && e.states[i] != omitted {
			e.sink.Histogram(e.seconds[i].Start.Unix(), h)
		}
	}
}

// distributions holds the response time histograms of consecutive seconds of one resource. Its memory is reused.
//
// The timeline has a histogram for each of its seconds, but only seconds with a name have a record: a backward step of
// the clock leaves some seconds without a name. The calls of these seconds count in the cumulative histogram. The
// slice positions therefore maps each record to its histogram.
type distributions struct {
	hs        []node.Histogram
	missing   int            // number of leading entries of hs that are no longer kept
	positions []int          // index in hs of each record; -1 if not kept
	before    node.Histogram // sum of all histograms before the kept ones
	hasBefore bool           // before was read
}

// read loads the histograms that the view keeps of the seconds in [from, to). seconds holds the records of the
// same range. If before is set, read also loads the sum of all earlier histograms.
func (d *distributions) read(r *Resources, v *node.View, from, to int64, before bool, seconds []node.MetricNode) {
	from = max(from, to-r.kept, v.Since())
	n := int(max(to-from, 0))
	d.hs, d.positions = slices.Grow(d.hs[:0], n)[:n], d.positions[:0]
	first := v.Histograms(from, d.hs)
	d.missing = int(max(first-from, 0))
	d.hasBefore = before && v.HistogramBefore(max(first, from), &d.before)
	for i := range seconds {
		position := -1
		if i >= len(seconds)-n { // may be kept
			index := r.stats.Timeline().IndexAtOrAfter(seconds[i].Start)
			position = int(index - from)
		}
		d.positions = append(d.positions, position)
	}
}

// of returns the histogram of the second with this position in emitter.seconds, or nil if it is no longer kept.
func (d *distributions) of(i int) *node.Histogram {
	if position := d.positions[i]; position >= d.missing {
		return &d.hs[position]
	}
	return nil
}
