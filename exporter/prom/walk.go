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
	// labels are those of the samples that follow, sorted by name.
	labels(names, values []string)
	value(m *metric, v float64)
	histogram(m *metric, h *node.Histogram, began time.Time)
}

// walk reads all there is, once: the samples of one view are of one moment.
func (p *Collector) walk(to sink) {
	var h node.Histogram
	apart := p.by == "" || p.histogramsBy // every view has its own histogram
	names, whole := []string{"resource"}, []string{"resource"}
	if p.by != "" {
		names = []string{p.by, "resource"} // sorted, as both of them come before it
	}
	m := p.stats.Seal()
	for _, r := range m.Resources {
		p.words(to, r)
		if !apart {
			r.View().Snapshot(m.Now, &h)
			to.labels(whole, []string{r.Name()})
			p.histogram(to, &h, r.View())
		}
		for values, v := range p.views(r) {
			var snap node.Snapshot
			to.labels(names, values)
			if apart {
				snap = v.Snapshot(m.Now, &h)
				p.histogram(to, &h, v)
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
			if !yield([]string{name, r.Name()}, v) {
				return
			}
		}
	}
}

// histogram hands on the histogram of a view.
func (p *Collector) histogram(to sink, h *node.Histogram, v *node.View) {
	for _, m := range p.metrics {
		if m.Type == exporter.Histogram {
			to.histogram(m, h, v.Began())
		}
	}
}

// words hands on what is counted by word.
func (p *Collector) words(to sink, r *collector.Resource) {
	for _, m := range p.metrics {
		if m.Words == nil {
			continue
		}
		for word, n := range m.Words(r) {
			to.labels([]string{m.Labels[1], "resource"}, []string{word, r.Name()})
			to.value(m, float64(n))
		}
	}
}

// self hands on the metrics about windowstat.
func (p *Collector) self(to sink) {
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
		to.labels(nil, nil)
		switch {
		case m.Resource != nil || m.Words != nil || m.Type == exporter.Histogram:
		case m.Name == exporter.BuildInfo:
			to.labels([]string{"goversion", "version"}, []string{runtime.Version(), exporter.Version()})
			to.value(m, 1)
		case m.Self != nil:
			to.value(m, m.Self(health))
		default:
			to.value(m, values[m.Name])
		}
	}
}
