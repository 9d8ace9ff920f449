package prom

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/internal/walk"
)

// Options configure a [Collector]. The zero value is sensible.
type Options struct {
	// Namespace is the prefix of all names, [exporter.Namespace] if empty.
	Namespace string
	// Sources are other parts of windowstat with metrics about themselves, such as the metric log. Self-metrics
	// without a source are 0. Where several sources have the same one, counters are added and of gauges the highest
	// is shown.
	Sources []exporter.Source
	// By is a label that all metrics of resources get, besides resource: "origin" or "entrance". There is a series for
	// each origin, or entrance, of each resource then, and calls without an origin have an empty one. Blocks are counted
	// by this label then and not by reason. Empty is none.
	By string
	// HistogramsBy says that the histogram gets the label, too: some 17 series more for each value, and the native
	// histogram. Otherwise it is of all calls of the resource.
	HistogramsBy bool
}

// Collector is a prometheus.Collector of all resources and of windowstat itself. It is safe for concurrent use.
type Collector struct {
	metrics *walk.Metrics
	descs   []desc // by number of the metric
}

// desc is what client_golang knows of a metric.
type desc struct {
	*prometheus.Desc
	kind prometheus.ValueType
}

// New makes a Collector to register. The error names every option that is wrong.
func New(c *collector.Collector, o Options) (*Collector, error) {
	all, err := walk.New(c, walk.Options(o))
	if err != nil {
		return nil, fmt.Errorf("prom: %w", err)
	}
	p := &Collector{metrics: all}
	kinds := map[exporter.Type]prometheus.ValueType{exporter.Counter: prometheus.CounterValue, exporter.Gauge: prometheus.GaugeValue}
	for _, m := range all.List {
		p.descs = append(p.descs, desc{prometheus.NewDesc(m.Family.Name, m.Help, m.Labels, nil), kinds[m.Type]})
	}
	return p, nil
}

// Describe implements prometheus.Collector.
func (p *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range p.descs {
		ch <- d.Desc
	}
}

// Collect implements prometheus.Collector.
func (p *Collector) Collect(ch chan<- prometheus.Metric) {
	p.metrics.Walk(&metrics{ch: ch, descs: p.descs})
}
