package seconds

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// Resources is the [Stream] of a Collector's resources. It contains a gauge for each row of [table.Seconds] and a
// histogram, both with the label resource. It contains the same metrics of all inbound traffic without a label, as soon
// as inbound traffic exists, and [table.DryRun]. Create it with [NewResources]. It is safe for concurrent use.
type Resources struct {
	stats     *collector.Collector
	namespace string
	log       Log
	families  [kinds]families
	run       table.Family
	line      *Line
	kept      int64 // number of seconds with kept histograms
	bounds    int   // number of bounds of the classic histogram
}

// kind is the subject of samples. The order of the kinds is the order of the documented metrics.
type kind int

const (
	resources kind = iota
	inbound        // all inbound traffic
	dryRuns        // calls that a dry-run limit would have refused
	kinds
)

// families holds the per-second metrics of one kind.
type families struct {
	metrics    []family
	histograms [Single + 1]*table.Family // by temporality; nil without one
}

// family is a row of [table.Seconds] with its full name, and with its sum if the metric adds up.
type family struct {
	table.Second
	family, sum table.Family
}

// tables returns the rows of a Collector's seconds, by kind.
func tables() [kinds][]table.Second {
	return [kinds][]table.Second{
		append(table.Seconds(), table.Histograms()...),
		table.InboundSeconds(),
		{table.DryRun()},
	}
}

// sentinelTables returns the rows of the seconds in Sentinel's logs, by kind.
func sentinelTables() [kinds][]table.Second {
	return [kinds][]table.Second{table.SentinelSeconds(), table.SentinelInboundSeconds(), nil}
}

// newFamilies returns the families of the rows for which keep returns true, by kind.
func newFamilies(
	namespace string, rows [kinds][]table.Second, keep func(*table.Second) bool,
) (all [kinds]families) {
	for kind := range all {
		to := &all[kind]
		for _, m := range slices.DeleteFunc(rows[kind], func(m table.Second) bool { return !keep(&m) }) {
			f := table.Family{Name: namespace + "_" + m.Name, Type: m.Type, Unit: m.Unit, Help: m.Help, Calls: m.Calls}
			switch m.Type {
			case table.Histogram:
				to.histograms[Cumulative] = &f
			case table.GaugeHistogram:
				to.histograms[Single] = &f
			default:
				sum := table.Family{
					Name:  f.Name + "_total",
					Type:  table.Counter,
					Unit:  m.Unit,
					Help:  m.Sum,
					Calls: m.Calls,
				}
				to.metrics = append(to.metrics, family{m, f, sum})
			}
		}
	}
	return all
}

// Names returns the full names of all per-second metrics except the histograms, in the order of [table.Seconds]. If
// logged is set, Names returns only the metrics that the metric log has.
func Names(namespace string, logged bool) (names []string) {
	for _, f := range newFamilies(namespace, tables(), func(m *table.Second) bool { return !logged || m.Logged }) {
		for _, m := range f.metrics {
			names = append(names, m.family.Name)
		}
	}
	return names
}

// SentinelNames returns the full names of the per-second metrics of Sentinel's logs.
func SentinelNames(namespace string) []string { return NewSentinelFamilies(namespace).names() }

// NewResources returns the stream of c. If log is not nil, the stream also contains the logged seconds of earlier
// processes.
func NewResources(c *collector.Collector, namespace string, log Log) *Resources {
	r := &Resources{
		stats: c, namespace: namespace, log: log, run: table.Run(namespace), line: NewLine(c),
		kept: int64(c.Histograms() / time.Second),
	}
	r.families = newFamilies(
		namespace,
		tables(),
		func(m *table.Second) bool { return !c.DurationsUnknown() || !m.Timed },
	)
	var h node.Histogram
	c.Tree().View().Node().Snapshot(c.Timeline().Now(), &h)
	for range h.Classic() {
		r.bounds++
	}
	return r
}

// Knows implements [Stream].
func (r *Resources) Knows(metric string) bool {
	for _, f := range r.families {
		if slices.ContainsFunc(f.metrics, func(m family) bool { return m.family.Name == metric }) {
			return true
		}
	}
	return metric == r.run.Name
}

// Sealed implements [Stream].
func (r *Resources) Sealed(open int64) int64 { return open }

// Size implements [Stream].
func (r *Resources) Size(s *Selection, from int64) Size {
	index := r.line.Index(from)
	first, named := r.stats.Timeline().WallTime(index)
	var sizes [kinds]rowSize
	for kind := range sizes {
		sizes[kind] = r.size(s, &r.families[kind])
	}
	all := r.runSize()
	r.views(s, func(of kind, _ *collector.Resource, v *node.View, labels, values []string) {
		one := sizes[of].whole
		if named && v.LastActive(math.MaxInt64) < index {
			if past := idlenessBefore(r.stats, v, index); past.suppressed(first.Unix()) {
				one = sizes[of].always
			}
		}
		for i, value := range values {
			escapes := strings.Count(value, `\`) + strings.Count(value, `"`) + strings.Count(value, "\n")
			one.Bytes += one.Samples * (labelBytes(labels[i], value) + escapes)
		}
		all = all.Add(one)
	})
	return all
}

// runSize returns the size of the run sample of one second.
func (r *Resources) runSize() Size {
	return Size{1, len(r.run.Name) + len(" 7000000000000000 1700000000000") + 1}
}

// lineBytes is the length of a line without names.
const lineBytes = len(`{} 123456789 1700000000000`) + 1

// labelBytes returns the length of a label in a line, without the escape characters.
func labelBytes(name, value string) int { return len(name) + len(`=""`) + len(value) }

// nativeBytes is the length of a native histogram with a hundred buckets.
const nativeBytes = 512

// rowSize is the size of a second without its labels: whole for a full second, always for an omitted second, which has
// only the metrics with [table.Second].Always.
type rowSize struct{ whole, always Size }

// size returns the sizes of a second of the selected metrics in f, without the labels.
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
	switch h := f.histograms[s.Histogram]; {
	case h == nil:
	case h.Type == table.GaugeHistogram:
		one.whole = one.whole.Add(Size{1, nativeBytes})
	default:
		n := r.bounds + 3
		one.whole = one.whole.Add(Size{n, n * (lineBytes + len(h.Name) + len(`_bucket,le="0.001"`))})
	}
	return one
}

// selected returns the selected metrics.
func (f *families) selected(s *Selection) []*family {
	list := make([]*family, 0, len(f.metrics))
	for i := range f.metrics {
		if m := &f.metrics[i]; s.Has(m.family.Name) {
			list = append(list, m)
		}
	}
	return list
}

// views calls f for each selected resource and its dry runs, and for all inbound traffic as soon as it exists. The
// Resource is nil except for a resource itself. The label names and values are valid only during the call. Size and
// Emit both use views, so they cover the same series.
func (r *Resources) views(s *Selection, f func(kind, *collector.Resource, *node.View, []string, []string)) {
	labels, values := []string{"reason", "resource"}, make([]string, 2)
	for _, x := range r.stats.Resources() {
		if !s.wants(x.Name()) {
			continue
		}
		values[1] = x.Name()
		f(resources, x, x.View().Node(), labels[1:], values[1:])
		for reason, v := range x.DryRuns() {
			if n := v.Node(); n != nil { // the limit would have refused a call
				values[0] = reason
				f(dryRuns, nil, n, labels, values)
			}
		}
	}
	if v := r.stats.Inbound().Node(); v.Used() && s.total() {
		f(inbound, nil, v, nil, nil)
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
	var emitters [kinds]emitter
	for kind := range emitters {
		emitters[kind] = r.families[kind].emitter(s, sink)
	}
	r.views(s, func(of kind, x *collector.Resource, v *node.View, labels, values []string) {
		e := &emitters[of]
		e.read(r, v, begin, end)
		e.resource = x
		e.emit(labels, values)
	})
	r.emitRuns(begin, end, sink)
	return reached
}

// emitRuns writes the run of this process for each of its seconds in [begin, end).
func (r *Resources) emitRuns(begin, end int64, sink Sink) {
	sink.Series(&r.run, nil, nil)
	for i, id := begin, float64(r.stats.RunID()); i < end; i++ {
		if name, ok := r.stats.Timeline().WallTime(i); ok {
			sink.Value(name.Unix(), id)
		}
	}
}
