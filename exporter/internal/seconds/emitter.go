package seconds

import (
	"math"
	"slices"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// emitter emits the samples of consecutive seconds of resources, one resource after the other, or of all inbound traffic. The seconds
// come from the history, by read, or from a log, by [Filler]; see tells then which of them are still. Both are done once for all metrics,
// because a second has a dozen.
type emitter struct {
	sink      Sink
	metrics   []*family
	sums      Temporality
	histogram *table.Family // nil if not selected
	timed     bool          // histograms are needed

	seconds    []node.MetricNode
	states     []state // of the seconds
	active     bool    // not all of them are still
	histograms distributions

	// Of cumulative sums and histograms.
	began   int64       // the second since which they count
	counts  node.Counts // what sums had before the seconds
	counted bool        // counts is known
	sum     node.MetricNode
}

// state is whether a second is emitted. Metrics that always are take no notice of it.
type state byte

const (
	omitted state = iota // it is still
	sent
	resumed // sent, after a second that is omitted
)

// emitter makes one for the selected ones of some families.
func (f *families) emitter(s *Selection, sink Sink) emitter {
	e := emitter{sink: sink, metrics: f.selected(s), sums: s.Sums, histogram: f.histograms[s.Histogram]}
	e.timed = e.histogram != nil || slices.ContainsFunc(e.metrics, func(m *family) bool { return m.RT != nil })
	return e
}

// read reads the seconds of a view in [from, to).
func (e *emitter) read(r *Resources, v *node.View, from, to int64) {
	e.seconds = v.AppendSeconds(e.seconds[:0], from, to)
	past, cumulative := unknown, e.histogram != nil && e.histogram.Type == table.Histogram
	e.counted, e.began = false, v.Began().Unix()
	if len(e.seconds) > 0 && (e.seconds[0].Idle() || cumulative || e.sums == Cumulative) { // else the past makes no difference
		first := r.stats.Timeline().IndexAtOrAfter(e.seconds[0].Start)
		past = stillBefore(r.stats, v, first)
		if e.sums == Cumulative {
			e.counts, e.counted = v.CountsBefore(first)
		}
	}
	if e.see(&past); e.timed && e.active {
		e.histograms.read(r, v, from, to, cumulative, e.seconds)
	}
}

// see sets the states of the seconds. The past is as of before them, and then as of behind them.
func (e *emitter) see(past *still) {
	e.states, e.active = e.states[:0], false
	for i := range e.seconds {
		now := sent
		if past.is(e.seconds[i].Start.Unix() - 1) {
			now = resumed
		}
		if past.see(&e.seconds[i]) {
			now = omitted
		}
		e.states, e.active = append(e.states, now), e.active || now != omitted
	}
}

// emit emits the seconds with these labels.
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
	}
}

// start starts a cumulative series.
func (e *emitter) start(f *table.Family, labels, values []string) {
	e.sink.Series(f, labels, values)
	if sink, ok := e.sink.(Starter); ok {
		sink.Start(e.began)
	}
}

// values emits a metric.
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

// totals emits the metric's sum at the end of each second that is not still, and at the beginning of one that comes after a still one,
// so that what was counted in any second is the difference of two samples.
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

// points emits the cumulative histogram at the times at which totals emits the sum of a metric.
func (e *emitter) points() {
	d := &e.histograms
	if !d.hasBefore {
		return
	}
	next := d.missing
	before := func(place int) *node.Histogram {
		for ; next < place; next++ { // one without a name counts, too
			d.before.Add(&d.hs[next])
		}
		return &d.before
	}
	for i := range e.seconds {
		at, place := e.seconds[i].Start.Unix(), d.places[i]
		if d.of(i) == nil {
			continue
		}
		if e.states[i] == resumed {
			e.sink.Histogram(at, before(place))
		}
		if e.states[i] != omitted {
			e.sink.Histogram(at+1, before(place+1))
		}
	}
}

// singles emits the histogram of each second that is not still; it is empty if no call ended in one.
func (e *emitter) singles() {
	for i := range e.seconds {
		if h := e.histograms.of(i); h != nil && e.states[i] != omitted {
			e.sink.Histogram(e.seconds[i].Start.Unix(), h)
		}
	}
}

// distributions are the response time histograms of consecutive seconds of one resource. Their memory is reused.
//
// There is a histogram of each second of the timeline, and a record only of those that have a name: a step of the clock back leaves
// some without one, whose calls are in the cumulative histogram all the same. So each record has its place among the histograms.
type distributions struct {
	hs        []node.Histogram
	missing   int            // those that are not kept any more, at the beginning
	places    []int          // in hs, of the seconds that are emitted
	before    node.Histogram // the sum of all before those that are kept
	hasBefore bool           // before was read
}

// read reads the histograms that are kept of the seconds in [from, to), which have these records, and with before also the sum of all
// earlier ones.
func (d *distributions) read(r *Resources, v *node.View, from, to int64, before bool, seconds []node.MetricNode) {
	from = max(from, to-r.kept, v.Since())
	n := int(max(to-from, 0))
	d.hs, d.places = slices.Grow(d.hs[:0], n)[:n], d.places[:0]
	first := v.Histograms(from, d.hs)
	d.missing = int(max(first-from, 0))
	d.hasBefore = before && v.HistogramBefore(max(first, from), &d.before)
	for i := range seconds {
		place := -1
		if i >= len(seconds)-n { // it may be kept
			index := r.stats.Timeline().IndexAtOrAfter(seconds[i].Start)
			place = int(index - from)
		}
		d.places = append(d.places, place)
	}
}

// of returns the histogram of a second by its number, nil if it is not kept.
func (d *distributions) of(i int) *node.Histogram {
	if place := d.places[i]; place >= d.missing {
		return &d.hs[place]
	}
	return nil
}

// stillFor is how many seconds before an idle one must have been idle, too, until a series stops.
const stillFor = 60

// still knows in which seconds a resource is still: nothing happened in the second nor in the minute before it, by the names of
// the seconds, and nothing was in flight. It is the last second that was not idle, or the one before the first that is known. Of
// a still second only the metrics with [table.Second].Always are sent. Which seconds are still depends on what happened before
// them and on nothing else, so it is the same for every reader, at any time.
type still int64

// unknown is a still without a past: the next second resumed one.
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

// stillBefore is the past of a view at the second with this index. A second without a name was not handed out, and is passed
// over here as well.
func stillBefore(c *collector.Collector, v *node.View, index int64) still {
	for {
		index = v.LastActive(index)
		if index < v.Since() {
			return still(v.Began().Unix() - 1)
		}
		if name, ok := c.Timeline().WallTime(index); ok {
			return still(name.Unix())
		}
	}
}
