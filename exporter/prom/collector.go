package prom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/gather"
	"github.com/windowstat/windowstat/exporter/internal/table"
)

// Options configures a [Collector]. The zero value is a sensible default.
type Options struct {
	// Namespace is the prefix of all metric names. The default is windowstat.
	Namespace string
	// By adds the label "origin" or "entrance" to all metrics of resources. A resource then has one series for each
	// origin or entrance, and the label is empty for calls without an origin. Two metrics do not change:
	// windowstat_block_total counts by reason, and the response time histogram, about 17 series, remains one for each
	// resource. windowstat_block_by_origin_total or windowstat_block_by_entrance_total counts blocks by the new label.
	By By
}

// By is an additional label of the metrics of resources. The zero value adds no label.
type By = gather.By

// The additional labels.
const (
	ByOrigin   = gather.ByOrigin   // the caller
	ByEntrance = gather.ByEntrance // the start of the call chain
)

// Check returns all invalid options as [collector.OptionError]s.
func (o Options) Check() error { return gather.Options(o).Check("prom") }

// Collector is a prometheus.Collector of all resources and of the metrics that windowstat publishes about itself.
// Create it with [New]. It is safe for concurrent use.
//
// Describe returns the metrics that existed when New was called; Collect returns the metrics that exist now. A
// Collector can therefore be unregistered and registered again. A pedantic prometheus.Registry refuses metrics that
// were published after New; other registries accept them.
type Collector struct {
	metrics *gather.Metrics
	descs   map[*table.Family]*prometheus.Desc // descriptions of the metrics that existed at New
}

// New returns a Collector to register. The error names every invalid option.
func New(c *collector.Collector, o Options) (*Collector, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	p := &Collector{metrics: gather.New(c, gather.Options(o)), descs: map[*table.Family]*prometheus.Desc{}}
	for _, f := range p.metrics.Families() {
		p.descs[f] = p.desc(f)
	}
	return p, nil
}

// desc returns the description of a metric. A metric that was published after New gets a new description each time.
func (p *Collector) desc(f *table.Family) *prometheus.Desc {
	if d := p.descs[f]; d != nil {
		return d
	}
	return prometheus.V2.NewDesc(
		f.Name,
		f.Help,
		prometheus.UnconstrainedLabels(f.Labels),
		nil,
		prometheus.WithUnit(f.Unit),
	)
}

// Describe implements prometheus.Collector.
func (p *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range p.descs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (p *Collector) Collect(ch chan<- prometheus.Metric) { p.metrics.Gather(&metrics{ch: ch, p: p}) }
