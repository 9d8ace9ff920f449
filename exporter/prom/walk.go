package prom

import (
	"iter"
	"runtime"
	"strings"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/node"
)

// sink takes the samples of a scrape.
type sink interface {
	// labels are those of the samples that follow, sorted by name. The slices are the caller's.
	labels(names, values []string)
	value(m *metric, v float64)
	// histogram hands on the response times since began, and exemplars of them, the quickest first.
	histogram(m *metric, h *node.Histogram, began time.Time, exemplars []collector.Exemplar)
}

// walk reads all there is, once: the samples of one view are of one moment.
func (p *Collector) walk(to sink) {
	var h node.Histogram
	apart := p.by == "" || p.histogramsBy // every view has its own histogram
	var exemplars []collector.Exemplar    // of a resource, not of a view
	names, values := []string{"resource"}, make([]string, 2)
	if p.by != "" {
		names = []string{p.by, "resource"} // sorted, as both of them come before it
	}
	m := p.stats.Seal()
	for _, r := range m.Resources {
		p.words(to, r, values)
		if !apart {
			r.View().Snapshot(m.Now, &h)
			values[0] = r.Name()
			to.labels(names[1:], values[:1])
			p.histogram(to, &h, r.View(), r.Exemplars())
		}
		for name, v := range p.views(r) {
			values[0], values[1] = name, r.Name()
			to.labels(names, values[2-len(names):])
			var snap node.Snapshot
			if apart {
				snap = v.Snapshot(m.Now, &h)
				if p.by == "" {
					exemplars = r.Exemplars()
				}
				p.histogram(to, &h, v, exemplars)
			} else {
				snap = v.Snapshot(m.Now, nil)
			}
			for _, m := range p.metrics {
				if m.Resource != nil {
					to.value(m, m.Resource(&snap))
				}
			}
		}
	}
	p.self(to)
}

// views iterates over the views of a resource that are shown, each with the value of the label for it.
func (p *Collector) views(r *collector.Resource) iter.Seq2[string, *node.View] {
	switch p.by {
	case byOrigin:
		return r.Origins()
	case byEntrance:
		return r.Entrances()
	}
	return func(yield func(string, *node.View) bool) { yield("", r.View()) }
}

// histogram hands on the histogram of a view.
func (p *Collector) histogram(to sink, h *node.Histogram, v *node.View, exemplars []collector.Exemplar) {
	for _, m := range p.metrics {
		if m.Type == exporter.Histogram {
			to.histogram(m, h, v.Began(), exemplars)
		}
	}
}

// words hands on what is counted by word.
func (p *Collector) words(to sink, r *collector.Resource, values []string) {
	for _, m := range p.metrics {
		if m.Words == nil {
			continue
		}
		for word, n := range m.Words(r) {
			values[0], values[1] = word, r.Name()
			to.labels(m.wordLabels, values)
			to.value(m, float64(n))
		}
	}
}

// self hands on the metrics about windowstat.
func (p *Collector) self(to sink) {
	values := map[string]float64{}
	for _, s := range p.sources {
		s.Self(func(name string, v float64, labels ...string) {
			switch m := p.byName[name]; {
			case m == nil:
			case len(labels) > 0:
				to.labels(m.Labels, labels)
				to.value(m, v)
			case strings.HasSuffix(name, "_total"):
				values[name] += v
			default:
				values[name] = max(values[name], v)
			}
		})
	}
	health := p.stats.Health()
	for _, m := range p.metrics {
		to.labels(nil, nil)
		switch {
		case m.Resource != nil || m.Words != nil || m.Type == exporter.Histogram:
		case m.Name == exporter.BuildInfo:
			to.labels([]string{"goversion", "version"}, []string{runtime.Version(), exporter.Version()})
			to.value(m, 1)
		case m.Self != nil:
			to.value(m, m.Self(health))
		case len(m.Labels) == 0:
			to.value(m, values[m.Name])
		}
	}
}
