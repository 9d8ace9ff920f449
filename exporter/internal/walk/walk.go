package walk

import (
	"iter"
	"runtime"
	"strings"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/node"
)

// Sink takes the samples of a scrape.
type Sink interface {
	// Labels are those of the samples that follow, sorted by name. The slices are the caller's.
	Labels(names, values []string)
	Value(m *Metric, v float64)
	// Histogram hands on the response times since began, and exemplars of them, the quickest first.
	Histogram(m *Metric, h *node.Histogram, began time.Time, exemplars []collector.Exemplar)
}

// Walk reads all there is, once: the samples of one view are of one moment.
func (p *Metrics) Walk(to Sink) {
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
			to.Labels(names[1:], values[:1])
			p.histogram(to, &h, r.View(), r.Exemplars())
		}
		for name, v := range p.views(r) {
			values[0], values[1] = name, r.Name()
			to.Labels(names, values[2-len(names):])
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
			for _, m := range p.List {
				if m.Resource != nil {
					to.Value(m, m.Resource(&snap))
				}
			}
		}
	}
	p.self(to)
}

// views iterates over the views of a resource that are shown, each with the value of the label for it.
func (p *Metrics) views(r *collector.Resource) iter.Seq2[string, *node.View] {
	switch p.by {
	case byOrigin:
		return r.Origins()
	case byEntrance:
		return r.Entrances()
	}
	return func(yield func(string, *node.View) bool) { yield("", r.View()) }
}

// histogram hands on the histogram of a view.
func (p *Metrics) histogram(to Sink, h *node.Histogram, v *node.View, exemplars []collector.Exemplar) {
	for _, m := range p.List {
		if m.Type == exporter.Histogram {
			to.Histogram(m, h, v.Began(), exemplars)
		}
	}
}

// words hands on what is counted by word.
func (p *Metrics) words(to Sink, r *collector.Resource, values []string) {
	for _, m := range p.List {
		if m.Words == nil {
			continue
		}
		for word, n := range m.Words(r) {
			values[0], values[1] = word, r.Name()
			to.Labels(m.wordLabels, values)
			to.Value(m, float64(n))
		}
	}
}

// self hands on the metrics about windowstat.
func (p *Metrics) self(to Sink) {
	values := map[string]float64{}
	for _, s := range p.sources {
		s.Self(func(name string, v float64, labels ...string) {
			switch m := p.byName[name]; {
			case m == nil:
			case len(labels) > 0:
				to.Labels(m.Labels, labels)
				to.Value(m, v)
			case strings.HasSuffix(name, "_total"):
				values[name] += v
			default:
				values[name] = max(values[name], v)
			}
		})
	}
	health := p.stats.Health()
	for _, m := range p.List {
		to.Labels(nil, nil)
		switch {
		case m.Resource != nil || m.Words != nil || m.Type == exporter.Histogram:
		case m.Name == exporter.BuildInfo:
			to.Labels([]string{"goversion", "version"}, []string{runtime.Version(), exporter.Version()})
			to.Value(m, 1)
		case m.Self != nil:
			to.Value(m, m.Self(health))
		case len(m.Labels) == 0:
			to.Value(m, values[m.Name])
		}
	}
}
