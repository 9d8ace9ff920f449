package bench

import (
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/node"
)

// constMetrics shows a windowstat collector in the way that client_golang documents for figures from elsewhere: a const
// metric for each sample. There is no const histogram that is both classic and native, so this one has no native buckets:
// it does less.
type constMetrics struct {
	stats *collector.Collector
	rows  []constRow
}

type constRow struct {
	exporter.Metric
	desc *prometheus.Desc
	kind prometheus.ValueType
}

func newConstMetrics(c *collector.Collector) *constMetrics {
	p := &constMetrics{stats: c}
	for _, m := range exporter.Catalogue() {
		kind := prometheus.GaugeValue
		if m.Type == exporter.Counter {
			kind = prometheus.CounterValue
		}
		p.rows = append(p.rows, constRow{m, prometheus.NewDesc(exporter.Namespace+"_"+m.Name, m.Help, m.Labels, nil), kind})
	}
	return p
}

// Describe implements prometheus.Collector.
func (p *constMetrics) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range p.rows {
		ch <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (p *constMetrics) Collect(ch chan<- prometheus.Metric) {
	var h node.Histogram
	moment := p.stats.Seal()
	for _, r := range moment.Resources {
		snap := r.View().Node().Snapshot(moment.Now, &h)
		for _, m := range p.rows {
			switch {
			case m.Resource != nil:
				ch <- prometheus.MustNewConstMetric(m.desc, m.kind, m.Resource(&snap), r.Name())
			case m.Some != nil:
				if v, ok := m.Some(r); ok {
					ch <- prometheus.MustNewConstMetric(m.desc, m.kind, v, r.Name())
				}
			case m.Words != nil:
				for word, n := range m.Words(r) {
					ch <- prometheus.MustNewConstMetric(m.desc, m.kind, float64(n), r.Name(), word)
				}
			case m.Type == exporter.Histogram:
				buckets := map[float64]uint64{}
				for bound, n := range h.Classic() {
					buckets[bound.Seconds()] = uint64(n)
				}
				ch <- prometheus.MustNewConstHistogram(m.desc, uint64(h.Count()), h.Sum().Seconds(), buckets, r.Name())
			}
		}
	}
	p.self(ch)
}

// self is windowstat about itself, a few samples.
func (p *constMetrics) self(ch chan<- prometheus.Metric) {
	health := p.stats.Health()
	for _, m := range p.rows {
		switch {
		case m.Resource != nil || m.Some != nil || m.Words != nil || m.Type == exporter.Histogram:
		case m.Name == exporter.BuildInfo:
			ch <- prometheus.MustNewConstMetric(m.desc, m.kind, 1, exporter.Version(), runtime.Version())
		case m.Self != nil:
			ch <- prometheus.MustNewConstMetric(m.desc, m.kind, m.Self(health))
		case len(m.Labels) == 0:
			ch <- prometheus.MustNewConstMetric(m.desc, m.kind, 0) // there is no source
		}
	}
}

// SecondsShown is how many seconds a page of seconds shows.
const SecondsShown = 15

// constSeconds shows the last seconds as const metrics with a time.
type constSeconds struct {
	stats *collector.Collector
	rows  []constSecond
}

type constSecond struct {
	exporter.Second
	desc *prometheus.Desc
}

// read reads the metric of a second, all of which are known here.
func (m *constSecond) read(second *node.MetricNode, rt *node.Histogram) (float64, bool) {
	if m.RT != nil {
		return m.RT(rt), rt.Count() > 0
	}
	return m.Value(second)
}

func newConstSeconds(c *collector.Collector) *constSeconds {
	p := &constSeconds{stats: c}
	for _, m := range exporter.Seconds() {
		p.rows = append(p.rows, constSecond{m, prometheus.NewDesc(exporter.Namespace+"_"+m.Name, m.Help, []string{"resource"}, nil)})
	}
	return p
}

// Describe implements prometheus.Collector.
func (p *constSeconds) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range p.rows {
		ch <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (p *constSeconds) Collect(ch chan<- prometheus.Metric) {
	moment := p.stats.Seal()
	var seconds []node.MetricNode
	rts := make([]node.Histogram, SecondsShown)
	for _, r := range moment.Resources {
		seconds = r.View().Node().AppendSeconds(seconds[:0], moment.Open-SecondsShown, moment.Open)
		r.View().Node().Histograms(moment.Open-SecondsShown, rts)
		for i := range seconds {
			for _, m := range p.rows {
				if v, ok := m.read(&seconds[i], &rts[i]); ok {
					ch <- prometheus.NewMetricWithTimestamp(seconds[i].Start,
						prometheus.MustNewConstMetric(m.desc, prometheus.GaugeValue, v, r.Name()))
				}
			}
		}
	}
}

// SecondsQuery asks a page of seconds for them.
var SecondsQuery = "window=" + (SecondsShown * time.Second).String()
