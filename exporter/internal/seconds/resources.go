package seconds

import (
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// Resources is the [Stream] of a Collector's resources: a gauge for each row of [table.Seconds], and a histogram, with the
// label resource; the same of all inbound traffic without a label, once there was any; and [table.DryRun]. It must be made with
// [NewResources], and is safe for concurrent use.
type Resources struct {
	stats     *collector.Collector
	namespace string
	log       Log
	resources families
	inbound   families
	dryRuns   families
	run       table.Family
	line      *Line
	kept      int64 // seconds for which histograms are kept
	bounds    int   // of the classic histogram
}

// families are the metrics of single seconds, of resources or of all inbound traffic.
type families struct {
	metrics    []family
	histograms table.Histograms
}

// family is a row of [table.Seconds] with its full name, and its sum if it has one.
type family struct {
	table.Second
	family, sum table.Family
}

// newFamilies makes those of some rows.
func newFamilies(namespace string, metrics []table.Second, keep func(*table.Second) bool) (list []family) {
	for _, m := range metrics {
		if keep(&m) {
			name := namespace + "_" + m.Name
			list = append(list, family{m, table.Family{Name: name, Type: table.Gauge, Help: m.Help}, table.Family{Name: name + "_total", Type: table.Counter, Help: m.Sum}})
		}
	}
	return list
}

// isLogged reports whether the metric log has a metric.
func isLogged(m *table.Second) bool { return m.Logged }

// Names returns the full names of all metrics of single seconds, but for the histograms, or of those that the metric log has, in the
// order of [table.Seconds].
func Names(namespace string, logged bool) (names []string) {
	all := append(append(table.Seconds(), table.InboundSeconds()...), table.DryRun())
	for _, m := range newFamilies(namespace, all, func(m *table.Second) bool { return !logged || m.Logged }) {
		names = append(names, m.family.Name)
	}
	return names
}

// NewResources makes the stream. If log is not nil, the stream has the logged seconds of earlier processes, too.
func NewResources(c *collector.Collector, namespace string, log Log) *Resources {
	whole := c.Tree().View().Node()
	r := &Resources{stats: c, namespace: namespace, log: log, run: table.Run(namespace), line: NewLine(c), kept: int64(c.Histograms() / time.Second)}
	known := func(m *table.Second) bool { return !c.DurationsUnknown() || !m.Timed }
	r.resources.metrics, r.inbound.metrics = newFamilies(namespace, table.Seconds(), known), newFamilies(namespace, table.InboundSeconds(), known)
	r.dryRuns.metrics = newFamilies(namespace, []table.Second{table.DryRun()}, known)
	r.resources.histograms, r.inbound.histograms = table.SecondsHistograms(namespace)
	var h node.Histogram
	whole.Snapshot(c.Timeline().Now(), &h)
	for range h.Classic() {
		r.bounds++
	}
	return r
}

// histogram is the selected histogram of some families, nil for none.
func (r *Resources) histogram(s *Selection, f *families) *table.Family {
	switch {
	case r.stats.DurationsUnknown(), f == &r.dryRuns:
	case s.Histogram == Cumulative:
		return &f.histograms.Cumulative
	case s.Histogram == Single:
		return &f.histograms.Single
	}
	return nil
}

// Knows implements [Stream].
func (r *Resources) Knows(metric string) bool {
	is := func(m family) bool { return m.family.Name == metric }
	all := slices.Concat(r.resources.metrics, r.inbound.metrics, r.dryRuns.metrics)
	return metric == r.run.Name || slices.ContainsFunc(all, is)
}

// Sealed implements [Stream].
func (r *Resources) Sealed(open int64) int64 { return open }

// Size implements [Stream].
func (r *Resources) Size(s *Selection, from int64) (all Size) {
	index := r.line.Index(from)
	first, named := r.stats.Timeline().Name(index)
	of := func(v *node.View, one rowSize) Size {
		if named && v.LastActive(math.MaxInt64) < index {
			if past := stillBefore(r.stats, v, index); past.is(first.Unix()) {
				return one.always
			}
		}
		return one.whole
	}
	one, dry := r.size(s, &r.resources), r.size(s, &r.dryRuns)
	for x := range s.resources(r.stats.Resources()) {
		all = all.Add(of(x.View().Node(), one).named(x.Name()))
		for reason, v := range x.DryRuns() {
			if n := v.Node(); n != nil {
				all = all.Add(of(n, dry).named(`reason="",` + reason + x.Name()))
			}
		}
	}
	if v := r.total(s); v != nil {
		all = all.Add(of(v, r.size(s, &r.inbound)))
	}
	return all.Add(r.runSize())
}

// runSize is the size of the run of a second.
func (r *Resources) runSize() Size {
	return Size{1, len(r.run.Name) + len(" 7000000000000000 1700000000000") + 1}
}

// total is the view of all inbound traffic, nil if it is not selected or there never was any.
func (r *Resources) total(s *Selection) *node.View {
	if v := r.stats.Inbound().Node(); v.Used() && s.total() {
		return v
	}
	return nil
}

// lineBytes is the length of a line without names.
const lineBytes = len(`{resource=""} 123456789 1700000000000`) + 1

// nativeBytes is the length of a native histogram of a hundred buckets.
const nativeBytes = 512

// rowSize is the size of a second of a resource without the resource's name: of a whole one, and of one in which it is still.
type rowSize struct{ whole, always Size }

// size returns the size of a second of a resource, or of all inbound traffic.
func (r *Resources) size(s *Selection, f *families) (one rowSize) {
	for _, m := range f.selected(s) {
		line := Size{1, lineBytes + len(m.family.Name)}
		if s.Sums != None && m.Sum != "" {
			line = line.Add(line)
		}
		one.whole = one.whole.Add(line)
		if m.Always {
			one.always = one.always.Add(line)
		}
	}
	switch h := r.histogram(s, f); {
	case h == nil:
	case h.Type == table.GaugeHistogram:
		one.whole = one.whole.Add(Size{1, nativeBytes})
	default:
		n := r.bounds + 3
		one.whole = one.whole.Add(Size{n, n * (lineBytes + len(h.Name) + len(`_bucket,le="0.001"`))})
	}
	return one
}

// named returns the size of a second of the resource with this name.
func (s Size) named(resource string) Size {
	escapes := strings.Count(resource, `\`) + strings.Count(resource, `"`) + strings.Count(resource, "\n")
	return Size{s.Samples, s.Bytes + s.Samples*(len(resource)+escapes)}
}

// selected returns the metrics of the selection.
func (f *families) selected(s *Selection) []*family {
	list := make([]*family, 0, len(f.metrics))
	for i := range f.metrics {
		if m := &f.metrics[i]; len(s.Metrics) == 0 || slices.Contains(s.Metrics, m.family.Name) {
			list = append(list, m)
		}
	}
	return list
}

// wants reports whether a resource is selected.
func (s *Selection) wants(resource string) bool {
	return len(s.Resources) == 0 || slices.Contains(s.Resources, resource)
}

// total reports whether the total of inbound traffic is selected.
func (s *Selection) total() bool { return len(s.Resources) == 0 }

// resources yields the selected ones of the resources.
func (s *Selection) resources(all []*collector.Resource) iter.Seq[*collector.Resource] {
	return func(yield func(*collector.Resource) bool) {
		for _, r := range all {
			if s.wants(r.Name()) && !yield(r) {
				return
			}
		}
	}
}

// Emit implements [Stream].
func (r *Resources) Emit(s *Selection, from, to int64, limit Limit, sink Sink) (reached int64) {
	left := max(limit.Seconds, 1)
	if first := r.line.First(); from < first && r.log != nil {
		if from, left = r.emitLogged(s, from, min(to, first), limit, sink); from < first {
			return from
		}
	}
	reached = min(to, r.line.After(from, left))
	begin, end := r.line.Index(from), r.line.Index(reached)
	e, dry := r.emitter(s, &r.resources, sink), r.emitter(s, &r.dryRuns, sink)
	for x := range s.resources(r.stats.Resources()) {
		e.read(r, x.View().Node(), begin, end)
		e.resource(x.Name(), e.seen)
		for reason, v := range x.DryRuns() {
			if n := v.Node(); n != nil { // it would have refused something
				dry.read(r, n, begin, end)
				dry.emit(dryRunLabels, []string{reason, x.Name()}, dry.seen)
			}
		}
	}
	if total := r.total(s); total != nil {
		e = r.emitter(s, &r.inbound, sink)
		e.read(r, total, begin, end)
		e.emit(nil, nil, e.seen)
	}
	r.emitRuns(begin, end, sink)
	return reached
}

var dryRunLabels = []string{"reason", "resource"}

// emitRuns emits which process counted each of the seconds of this process.
func (r *Resources) emitRuns(begin, end int64, sink Sink) {
	sink.Series(&r.run, nil, nil)
	for i, id := begin, float64(r.stats.RunID()); i < end; i++ {
		if name, ok := r.stats.Timeline().Name(i); ok {
			sink.Value(name.Unix(), id)
		}
	}
}
