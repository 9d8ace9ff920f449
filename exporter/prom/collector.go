package prom

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/node"
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

// validNamespace is what may stand before an underscore and a name.
var validNamespace = regexp.MustCompile(`^[a-zA-Z_]([a-zA-Z0-9_]*[a-zA-Z0-9])?$`)

func errNamespace(name string) error {
	return fmt.Errorf("prom: namespace %q: letters, digits and _ are allowed, no digit in front and no _ at the end", name)
}

// Collector is a prometheus.Collector of all resources and of windowstat itself. It is safe for concurrent use.
type Collector struct {
	stats        *collector.Collector
	by           string
	histogramsBy bool
	sources      []exporter.Source
	metrics      []*metric
	byName       map[string]*metric // without namespace
}

// metric is a row of the catalogue and its description.
type metric struct {
	exporter.Metric
	name       string // with namespace
	no         int    // among all
	wordLabels []string
	desc       *prometheus.Desc
	kind       prometheus.ValueType
}

// New makes a Collector to register. The error names every option that is wrong.
func New(c *collector.Collector, o Options) (*Collector, error) {
	if o.Namespace == "" {
		o.Namespace = exporter.Namespace
	}
	var errs []error
	if !validNamespace.MatchString(o.Namespace) {
		errs = append(errs, errNamespace(o.Namespace))
	}
	if o.By != "" && o.By != byOrigin && o.By != byEntrance {
		errs = append(errs, fmt.Errorf("prom: By is %q; %q, %q or nothing is allowed", o.By, byOrigin, byEntrance))
	}
	if o.HistogramsBy && o.By == "" {
		errs = append(errs, errors.New("prom: HistogramsBy without By"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	kinds := map[exporter.Type]prometheus.ValueType{exporter.Counter: prometheus.CounterValue, exporter.Gauge: prometheus.GaugeValue}
	p := &Collector{stats: c, by: o.By, histogramsBy: o.HistogramsBy, sources: o.Sources, byName: map[string]*metric{}}
	for _, m := range exporter.Catalogue() {
		if o.By != "" {
			m = labelled(m, o.By, o.HistogramsBy)
		}
		var words []string
		if m.Words != nil {
			words = slices.Sorted(slices.Values(m.Labels))
		}
		p.metrics = append(p.metrics, &metric{
			Metric:     m,
			name:       o.Namespace + "_" + m.Name,
			no:         len(p.metrics),
			wordLabels: words,
			desc:       prometheus.NewDesc(o.Namespace+"_"+m.Name, m.Help, m.Labels, nil),
			kind:       kinds[m.Type],
		})
		p.byName[m.Name] = p.metrics[len(p.metrics)-1]
	}
	return p, nil
}

// The labels that [Options].By can be.
const (
	byOrigin   = "origin"
	byEntrance = "entrance"
)

// labelled gives a metric of resources one more label.
func labelled(m exporter.Metric, by string, histograms bool) exporter.Metric {
	switch {
	case m.Name == exporter.Blocks: // reasons are known for the resource alone
		m.Words = nil
		m.Resource = func(s *node.Snapshot) float64 { return float64(s.Total.Block) }
		m.Labels = []string{"resource", by}
	case m.Resource != nil || m.Type == exporter.Histogram && histograms:
		m.Labels = append(slices.Clone(m.Labels), by)
	}
	return m
}

// Describe implements prometheus.Collector.
func (p *Collector) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range p.metrics {
		ch <- m.desc
	}
}

// Collect implements prometheus.Collector.
func (p *Collector) Collect(ch chan<- prometheus.Metric) { p.walk(&metrics{ch: ch}) }
