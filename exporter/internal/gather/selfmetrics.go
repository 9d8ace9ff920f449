package gather

import (
	"slices"
	"strings"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/table"
)

// series is a value with its label values.
type series struct {
	metric *Metric
	values []string
	v      float64
	began  time.Time
}

// SelfMetrics gives the sink the metrics about windowstat itself: the Collector's own, and those that its parts have published. Series
// with the same name and label values are merged as [collector.Collector.Publish] documents.
func (p *Metrics) SelfMetrics(to Sink) {
	var order []*series
	byKey := map[string]*series{}
	for _, m := range p.stats.Metrics() {
		x := p.published(&m)
		if x == nil {
			continue
		}
		m.Each(func(v float64, values ...string) {
			const separator = "\xff" // in no UTF-8
			key := m.Name + separator + strings.Join(values, separator)
			if s := byKey[key]; s != nil {
				s.v = merge(m.Name, s.v, v)
				if m.Began.Before(s.began) {
					s.began = m.Began
				}
				return
			}
			s := &series{x, slices.Clone(values), v, m.Began}
			byKey[key] = s
			order = append(order, s)
		})
	}
	for _, s := range order {
		to.Labels(s.metric.Labels, s.values, s.began)
		to.Value(s.metric, s.v)
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

// published returns the Metric of a metric about windowstat itself. It is the same in every call. It is nil for one that a page cannot
// have, because it has the name for resources.
func (p *Metrics) published(m *collector.Metric) *Metric {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.self[m.Name]
	if x == nil || !slices.Equal(x.Labels, m.Labels) { // or it was withdrawn, and another published
		if p.taken(m) {
			return nil
		}
		x = p.metric(table.Metric{Name: m.Name, Type: table.TypeOf(m.Name), Unit: m.Unit, Help: m.Help, Labels: m.Labels}, len(p.List)+len(p.inbound)+len(p.self))
		p.self[m.Name] = x
	}
	return x
}

// taken reports whether a page has the name of a published metric already, in one of its formats.
func (p *Metrics) taken(m *collector.Metric) bool {
	full := p.namespace + "_" + strings.TrimSuffix(m.Name, "_total")
	for _, f := range p.Families() {
		name := strings.TrimSuffix(f.Name, "_total")
		if full == name || f.Type == table.Histogram && slices.Contains([]string{name + "_bucket", name + "_count", name + "_sum"}, full) {
			return true
		}
	}
	return false
}

// All returns all present metrics, those of resources first.
func (p *Metrics) All() []*Metric {
	all := slices.Concat(p.List, p.inbound)
	for _, m := range p.stats.Metrics() {
		if x := p.published(&m); x != nil && !slices.Contains(all, x) {
			all = append(all, x)
		}
	}
	return all
}
