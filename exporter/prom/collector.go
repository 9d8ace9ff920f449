package prom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/gather"
	"github.com/windowstat/windowstat/exporter/internal/table"
)

// Options configure a [Collector]. The zero value is sensible.
type Options struct {
	// Namespace is the prefix of all names, windowstat if empty.
	Namespace string
	// By adds the label "origin" or "entrance" to all metrics of resources; none if empty. Each resource then has a series for
	// each origin or entrance; calls without an origin have an empty label. Blocks are then counted by this label, not by
	// reason. The histogram of response times, some 17 series, still has all calls of the resource in one.
	By By
}

// By is a label that metrics of resources can have besides resource. The zero value is none.
type By = gather.By

// The labels that metrics of resources can have.
const (
	ByOrigin   = gather.ByOrigin   // who calls
	ByEntrance = gather.ByEntrance // where the call chain enters
)

// Check returns everything that is wrong with the options, as [collector.OptionError]s.
func (o Options) Check() error { return gather.Options(o).Check("prom") }

// Collector is a prometheus.Collector of all resources and of the metrics that windowstat publishes about itself. It must be
// made with [New], and is safe for concurrent use.
//
// It describes what was published when it was made, and collects what is published when it is collected, so that it can be unregistered
// and registered again. Only a pedantic prometheus.Registry minds: it refuses what was published since.
type Collector struct {
	metrics *gather.Metrics
	descs   map[*table.Family]*prometheus.Desc // of what there was when it was made
}

// New makes a Collector to register. The error names every invalid option.
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

// desc returns the description of a metric. Those of parts, which may publish metrics at any time, are made when they are needed.
func (p *Collector) desc(f *table.Family) *prometheus.Desc {
	if d := p.descs[f]; d != nil {
		return d
	}
	return prometheus.NewDesc(f.Name, f.Help, f.Labels, nil)
}

// Describe implements prometheus.Collector. It is the same in every call.
func (p *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range p.descs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (p *Collector) Collect(ch chan<- prometheus.Metric) { p.metrics.Gather(&metrics{ch: ch, p: p}) }
