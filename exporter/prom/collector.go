package prom

import (
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/gather"
	"github.com/windowstat/windowstat/exporter/internal/table"
)

// Options configure a [Collector]. The zero value is sensible.
type Options struct {
	// Namespace is the prefix of all names, windowstat if empty.
	Namespace string
	// By is a label that all metrics of resources get, besides resource: "origin" or "entrance". There is a series for
	// each origin, or entrance, of each resource then, and calls without an origin have an empty one. Blocks are counted
	// by this label then and not by reason. Empty is none.
	By string
	// HistogramsBy says that the histogram gets the label, too: some 17 series more for each value, and the native
	// histogram. Otherwise it is of all calls of the resource.
	HistogramsBy bool
}

// Collector is a prometheus.Collector of all resources, and of what windowstat and its parts publish about themselves. It is
// safe for concurrent use.
type Collector struct {
	metrics *gather.Metrics
	descs   []desc   // of the resources' metrics, by number
	others  sync.Map // of all others: *gather.Metric to *desc
}

// desc is what client_golang knows of a metric.
type desc struct {
	*prometheus.Desc
	kind prometheus.ValueType
}

func newDesc(m *gather.Metric) desc {
	kind := prometheus.GaugeValue
	if m.Type == table.Counter {
		kind = prometheus.CounterValue
	}
	return desc{prometheus.NewDesc(m.Family.Name, m.Help, m.Labels, nil), kind}
}

// New makes a Collector to register. The error names every option that is wrong.
func New(c *collector.Collector, o Options) (*Collector, error) {
	all, err := gather.New(c, gather.Options(o))
	if err != nil {
		return nil, fmt.Errorf("prom: %w", err)
	}
	p := &Collector{metrics: all}
	for _, m := range all.List {
		p.descs = append(p.descs, newDesc(m))
	}
	return p, nil
}

// desc is that of a metric, made when it is first needed: parts may publish theirs at any time.
func (p *Collector) desc(m *gather.Metric) *desc {
	if m.No < len(p.descs) {
		return &p.descs[m.No]
	}
	if d, ok := p.others.Load(m); ok {
		return d.(*desc)
	}
	d := newDesc(m)
	x, _ := p.others.LoadOrStore(m, &d)
	return x.(*desc)
}

// Describe implements prometheus.Collector.
func (p *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range p.metrics.All() {
		ch <- p.desc(m).Desc
	}
}

// Collect implements prometheus.Collector.
func (p *Collector) Collect(ch chan<- prometheus.Metric) { p.metrics.Gather(&metrics{ch: ch, p: p}) }
