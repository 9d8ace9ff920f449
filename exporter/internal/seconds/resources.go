package seconds

import (
	"slices"
	"strings"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// Resources is the [Stream] of a Collector's resources: a gauge for each row of [table.Seconds], and the histogram, with the
// label resource. It must be made with [NewResources], and is safe for concurrent use.
type Resources struct {
	stats     *collector.Collector
	log       Log
	metrics   []family
	histogram table.Family
	first     int64 // index of the first second of this process
	minute    int64 // seconds for which response times are kept
	bounds    int   // of the classic histogram
}

// family is a row of [table.Seconds] with its full name.
type family struct {
	table.Second
	family table.Family
}

func newFamily(namespace string, m table.Second) family {
	return family{m, table.Family{Name: namespace + "_" + m.Name, Type: table.Gauge, Help: m.Help}}
}

// NewResources makes the stream. If log is not nil, the stream has the logged seconds of earlier processes, too.
func NewResources(c *collector.Collector, namespace string, log Log) *Resources {
	whole := c.Tree().View().Node()
	now := c.Timeline().Now()
	r := &Resources{stats: c, log: log, first: whole.Since(), minute: int64(whole.Minute(now).Span / time.Second)}
	for _, m := range table.Seconds() {
		if c.DurationsUnknown() && m.Timed {
			continue
		}
		r.metrics = append(r.metrics, newFamily(namespace, m))
	}
	r.histogram = table.Family{
		Name: namespace + "_" + table.SecondsRT, Type: table.Histogram, Help: table.SecondsRTHelp,
	}
	var h node.Histogram
	whole.Snapshot(now, &h)
	for range h.Classic() {
		r.bounds++
	}
	return r
}

// histograms reports whether the selection has histograms.
func (r *Resources) histograms(s *Selection) bool { return s.Histogram && !r.stats.DurationsUnknown() }

// First returns the index of the first second of this process. Indexes of earlier seconds are Unix times.
func (r *Resources) First() int64 { return r.first }

// Knows implements [Stream].
func (r *Resources) Knows(metric string) bool {
	return slices.ContainsFunc(r.metrics, func(m family) bool { return m.family.Name == metric })
}

// Sealed implements [Stream].
func (r *Resources) Sealed(open int64) int64 { return open }

// Size implements [Stream].
func (r *Resources) Size(s *Selection) (all Size) {
	one := r.size(s, r.selected(s))
	for _, x := range s.resources(r.stats.Seal().Resources) {
		all = all.Add(one.of(x.Name()))
	}
	return all
}

// lineBytes is the length of a line without names.
const lineBytes = len(`{resource=""} 123456789 1700000000000`) + 1

// rowSize is the size of a second of a resource without the resource's name.
type rowSize struct{ Size }

// size returns the size of a second of a resource.
func (r *Resources) size(s *Selection, metrics []*family) (one rowSize) {
	for _, m := range metrics {
		one.Samples++
		one.Bytes += lineBytes + len(m.family.Name)
	}
	if r.histograms(s) {
		n := r.bounds + 3
		one.Samples += n
		one.Bytes += n * (lineBytes + len(r.histogram.Name) + len(`_bucket,le="0.001"`))
	}
	return one
}

// of returns the size of a second of the resource with this name.
func (one rowSize) of(name string) Size {
	escapes := strings.Count(name, `\`) + strings.Count(name, `"`) + strings.Count(name, "\n")
	return Size{one.Samples, one.Bytes + one.Samples*(len(name)+escapes)}
}

// selected returns the metrics of the selection.
func (r *Resources) selected(s *Selection) []*family {
	list := make([]*family, 0, len(r.metrics))
	for i := range r.metrics {
		if m := &r.metrics[i]; len(s.Metrics) == 0 || slices.Contains(s.Metrics, m.family.Name) {
			list = append(list, m)
		}
	}
	return list
}

// wants reports whether a resource is selected.
func (s *Selection) wants(resource string) bool {
	return len(s.Resources) == 0 || slices.Contains(s.Resources, resource)
}

// resources returns the selected ones of the resources.
func (s *Selection) resources(all []*collector.Resource) []*collector.Resource {
	if len(s.Resources) == 0 {
		return all
	}
	var list []*collector.Resource
	for _, r := range all {
		if s.wants(r.Name()) {
			list = append(list, r)
		}
	}
	return list
}

// Emit implements [Stream].
func (r *Resources) Emit(s *Selection, from, to int64, limit Limit, sink Sink) (reached int64) {
	reached = min(to, from+max(limit.Seconds, 1))
	metrics := r.selected(s)
	var old *logged
	if from < r.first && r.log != nil {
		old = r.logged(s, r.size(s, metrics), from, min(to, r.first), limit)
		if reached = old.to; reached == r.first {
			// What is left of the limit is for the seconds of this process.
			used := max(float64(old.size.Samples)/float64(max(limit.Samples, 1)), float64(old.size.Bytes)/float64(max(limit.Bytes, 1)))
			left := min(limit.Seconds-old.seconds, int64(float64(limit.Seconds)*(1-used)))
			reached = min(to, r.first+max(left, 0))
		}
	}
	e := emitter{sink: sink, metrics: metrics, times: r.histograms(s) || slices.ContainsFunc(metrics, func(m *family) bool { return m.RT != nil })}
	if r.histograms(s) {
		e.histogram = &r.histogram
	}
	from = max(from, r.first)
	for _, x := range s.resources(r.stats.Seal().Resources) {
		e.seconds = x.View().Node().AppendSeconds(e.seconds[:0], from, reached)
		if e.times {
			e.rts.read(r, x.View().Node(), from, reached, r.histograms(s))
		}
		e.resource(x.Name(), old.take(x.Name()))
	}
	e.seconds, e.times = nil, false
	for _, name := range old.rest() {
		e.resource(name, old.take(name))
	}
	return reached
}
