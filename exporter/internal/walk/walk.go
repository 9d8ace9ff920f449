package walk

import (
	"runtime"
	"strings"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/leap"
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
	s := scrape{Metrics: p, to: to, values: make([]string, 2)}
	s.names = []string{"resource"}
	if p.by != "" {
		s.names = []string{p.by, "resource"} // sorted, as both of them come before it
	}
	s.apart = p.by == "" || p.histogramsBy
	m := p.stats.Seal()
	s.now = m.Now
	word, view := s.word, s.view // once, and not for each resource
	for _, s.resource = range m.Resources {
		for _, s.metric = range p.List {
			switch {
			case s.metric.Words != nil:
				s.metric.Words(s.resource)(word)
			case s.metric.Some != nil:
				s.some()
			}
		}
		if !s.apart {
			s.resource.View().Node().Snapshot(m.Now, &s.h)
			s.values[1] = s.resource.Name()
			to.Labels(s.names[1:], s.values[1:])
			s.histogram(s.resource.View().Node(), s.resource.Exemplars())
		}
		switch p.by {
		case byOrigin:
			s.resource.Origins()(view)
		case byEntrance:
			s.resource.Entrances()(view)
		default:
			s.view("", s.resource.View())
		}
	}
	p.self(to)
}

// scrape is a walk through the resources. What all of them need is made once.
type scrape struct {
	*Metrics
	to            Sink
	names, values []string // of labels
	apart         bool     // every view has its own histogram
	now           leap.Reading
	resource      *collector.Resource
	metric        *Metric

	snap node.Snapshot
	h    node.Histogram
}

// word hands on what the resource has counted of the metric by a word.
func (s *scrape) word(word string, n int64) bool {
	s.values[0], s.values[1] = word, s.resource.Name()
	s.to.Labels(s.metric.wordLabels, s.values)
	s.to.Value(s.metric, float64(n))
	return true
}

// some hands on a metric that the resource may not have.
func (s *scrape) some() {
	if v, ok := s.metric.Some(s.resource); ok {
		s.values[1] = s.resource.Name()
		s.to.Labels(s.metric.Labels, s.values[1:])
		s.to.Value(s.metric, v)
	}
}

// view hands on a view of the resource, with the value of the label for it.
func (s *scrape) view(name string, view collector.View) bool {
	v := view.Node()
	s.values[0], s.values[1] = name, s.resource.Name()
	s.to.Labels(s.names, s.values[2-len(s.names):])
	if s.apart {
		s.snap = v.Snapshot(s.now, &s.h)
		var exemplars []collector.Exemplar // of a resource, not of a view
		if s.by == "" {
			exemplars = s.resource.Exemplars()
		}
		s.histogram(v, exemplars)
	} else {
		s.snap = v.Snapshot(s.now, nil)
	}
	for _, m := range s.List {
		if m.Resource != nil {
			s.to.Value(m, m.Resource(&s.snap))
		}
	}
	return true
}

// histogram hands on the histogram of a view.
func (s *scrape) histogram(v *node.View, exemplars []collector.Exemplar) {
	for _, m := range s.List {
		if m.Type == exporter.Histogram {
			s.to.Histogram(m, &s.h, v.Began(), exemplars)
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
		case m.Resource != nil || m.Some != nil || m.Words != nil || m.Type == exporter.Histogram:
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
