package prom

import (
	"errors"
	"fmt"
	"iter"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

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

// Collector is a prometheus.Collector of all resources and of windowstat itself. It is safe for concurrent use.
type Collector struct {
	stats        *collector.Collector
	by           string
	histogramsBy bool
	sources      []exporter.Source
	metrics      []metric
}

// metric is a row of the catalogue and its description.
type metric struct {
	exporter.Metric
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// New makes a Collector to register. The error names every option that is wrong.
func New(c *collector.Collector, o Options) (*Collector, error) {
	if o.Namespace == "" {
		o.Namespace = exporter.Namespace
	}
	var errs []error
	if !validNamespace.MatchString(o.Namespace) {
		errs = append(errs, fmt.Errorf("prom: namespace %q: letters, digits and _ are allowed, no digit in front and no _ at the end", o.Namespace))
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
	p := &Collector{stats: c, by: o.By, histogramsBy: o.HistogramsBy, sources: o.Sources}
	for _, m := range exporter.Catalogue() {
		if o.By != "" {
			m = labelled(m, o.By, o.HistogramsBy)
		}
		p.metrics = append(p.metrics, metric{
			Metric: m,
			desc:   prometheus.NewDesc(o.Namespace+"_"+m.Name, m.Help, m.Labels, nil),
			kind:   kinds[m.Type],
		})
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
func (p *Collector) Collect(ch chan<- prometheus.Metric) {
	var histogram node.Histogram
	m := p.stats.Seal()
	for _, r := range m.Resources {
		p.words(ch, r)
		if p.by != "" && !p.histogramsBy {
			r.View().Snapshot(m.Now, &histogram)
			p.histogram(ch, r.View(), &histogram, r.Name())
		}
		for labels, v := range p.views(r) {
			if p.by != "" && !p.histogramsBy {
				snap := v.Snapshot(m.Now, nil)
				p.values(ch, &snap, labels...)
				continue
			}
			snap := v.Snapshot(m.Now, &histogram)
			p.values(ch, &snap, labels...)
			p.histogram(ch, v, &histogram, labels...)
		}
	}
	p.self(ch)
}

// views iterates over the views of a resource that are shown, each with its labels.
func (p *Collector) views(r *collector.Resource) iter.Seq2[[]string, *node.View] {
	return func(yield func([]string, *node.View) bool) {
		parts := r.Origins()
		switch p.by {
		case "":
			yield([]string{r.Name()}, r.View())
			return
		case byEntrance:
			parts = r.Entrances()
		}
		for name, v := range parts {
			if !yield([]string{r.Name(), name}, v) {
				return
			}
		}
	}
}

// values sends all counters and gauges of a view.
func (p *Collector) values(ch chan<- prometheus.Metric, snap *node.Snapshot, labels ...string) {
	for _, m := range p.metrics {
		if m.Resource != nil {
			ch <- m.value(m.Resource(snap), labels...)
		}
	}
}

// histogram sends the histogram of a view.
func (p *Collector) histogram(ch chan<- prometheus.Metric, v *node.View, h *node.Histogram, labels ...string) {
	for _, m := range p.metrics {
		if m.Type == exporter.Histogram {
			ch <- m.histogram(h, v.Began(), labels...)
		}
	}
}

// words sends what is counted by word.
func (p *Collector) words(ch chan<- prometheus.Metric, r *collector.Resource) {
	for _, m := range p.metrics {
		if m.Words == nil {
			continue
		}
		for word, n := range m.Words(r) {
			ch <- m.value(float64(n), r.Name(), word)
		}
	}
}

// self sends the metrics about windowstat.
func (p *Collector) self(ch chan<- prometheus.Metric) {
	values := map[string]float64{}
	for _, s := range p.sources {
		s.Self(func(name string, v float64) {
			if strings.HasSuffix(name, "_total") {
				values[name] += v
			} else {
				values[name] = max(values[name], v)
			}
		})
	}
	health := p.stats.Health()
	for _, m := range p.metrics {
		switch {
		case m.Resource != nil || m.Words != nil || m.Type == exporter.Histogram:
		case m.Name == exporter.BuildInfo:
			ch <- m.value(1, exporter.Version(), runtime.Version())
		case m.Self != nil:
			ch <- m.value(m.Self(health))
		default:
			ch <- m.value(values[m.Name])
		}
	}
}

func (m metric) value(v float64, labels ...string) prometheus.Metric {
	c, err := prometheus.NewConstMetric(m.desc, m.kind, v, labels...)
	if err != nil {
		return prometheus.NewInvalidMetric(m.desc, err)
	}
	return c
}

// zeroThreshold is client_golang's default. The zero bucket holds response times of 0 alone.
const zeroThreshold = prometheus.DefNativeHistogramZeroThreshold

func (m metric) histogram(h *node.Histogram, began time.Time, labels ...string) prometheus.Metric {
	buckets := map[int]int64{}
	for i, n := range h.Native() {
		buckets[i] = n
	}
	bounds := map[float64]uint64{}
	for bound, n := range h.Classic() {
		bounds[bound.Seconds()] = uint64(n)
	}
	count, sum := uint64(h.Count()), h.Sum().Seconds()
	native, err := prometheus.NewConstNativeHistogram(m.desc, count, sum, buckets, nil, uint64(h.Zero()),
		node.NativeSchema, zeroThreshold, began, labels...)
	classic, err2 := prometheus.NewConstHistogram(m.desc, count, sum, bounds, labels...)
	if err := errors.Join(err, err2); err != nil {
		return prometheus.NewInvalidMetric(m.desc, err)
	}
	return both{native, classic}
}

// both is a native histogram with the buckets of a classic one.
type both struct {
	prometheus.Metric
	classic prometheus.Metric
}

// Write implements prometheus.Metric.
func (b both) Write(out *dto.Metric) error {
	var classic dto.Metric
	if err := errors.Join(b.Metric.Write(out), b.classic.Write(&classic)); err != nil {
		return err
	}
	out.Histogram.Bucket = classic.Histogram.Bucket
	return nil
}
