package gather

import (
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/table"
)

// series is a value with its label values.
type series struct {
	family *table.Family
	values []string
	v      float64
	began  time.Time
}

// SelfMetrics passes the self-metrics to the sink: those of the Collector and those that its parts published. Series
// with equal names and label values are merged as [collector.Collector.Publish] documents.
func (p *Metrics) SelfMetrics(to Sink) {
	var order []*series
	byKey := map[string]*series{}
	for m, f := range p.published() {
		m.Each(func(v float64, values ...string) {
			const separator = "\xff" // never part of valid UTF-8
			key := m.Name + separator + strings.Join(values, separator)
			if s := byKey[key]; s != nil {
				s.v = merge(m.Name, s.v, v)
				if m.Began.Before(s.began) {
					s.began = m.Began
				}
				return
			}
			s := &series{f, slices.Clone(values), v, m.Began}
			byKey[key] = s
			order = append(order, s)
		})
	}
	for _, s := range order {
		to.Labels(s.family.Labels, s.values, s.began)
		to.Sample(s.family, s.v)
	}
}

// merge returns the value of two series with the same labels.
func merge(name string, a, b float64) float64 {
	switch {
	case table.TypeOf(name) == table.Counter:
		return a + b
	case strings.HasSuffix(name, "_timestamp_seconds"):
		return min(a, b)
	}
	return max(a, b)
}

// published returns the self-metrics, each with its family on a page; metrics with equal names share a family. It omits
// a metric whose name is taken by a metric of resources in one of the formats.
func (p *Metrics) published() iter.Seq2[*collector.Metric, *table.Family] {
	return func(yield func(*collector.Metric, *table.Family) bool) {
		byName := map[string]*table.Family{}
		for _, m := range p.stats.Metrics() {
			if p.taken[p.namespace+"_"+strings.TrimSuffix(m.Name, "_total")] {
				continue
			}
			f := byName[m.Name]
			if f == nil {
				f = &table.Family{
					Name:   p.namespace + "_" + m.Name,
					Type:   table.TypeOf(m.Name),
					Unit:   m.Unit,
					Help:   m.Help,
					Labels: m.Labels,
				}
				byName[m.Name] = f
			}
			if !yield(&m, f) {
				return
			}
		}
	}
}

// Families returns the families of all current metrics, those of resources first. A metric that several parts published
// appears once for each part.
func (p *Metrics) Families() []*table.Family {
	all := slices.Clone(p.families)
	for _, f := range p.published() {
		all = append(all, f)
	}
	return all
}
