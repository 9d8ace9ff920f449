package gather

import (
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/exporter/internal/text"
	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// Sink receives the samples of a scrape.
type Sink interface {
	// Labels sets the labels of the following samples, sorted by name, and the start time of their counters. The slices
	// are valid during the call.
	Labels(names, values []string, began time.Time)
	Sample(f *table.Family, v float64)
	// Distribution receives the histogram of response times with its exemplars, the fastest first.
	Distribution(f *table.Family, h *node.Histogram, exemplars []collector.Exemplar)
}

// Gather reads all metrics once and passes them to the sink. The samples of one view are read at one instant.
func (p *Metrics) Gather(to Sink) {
	s := scrape{Metrics: p, to: to, values: make([]string, 2)}
	s.names = []string{"resource"}
	if p.by != "" {
		s.names = []string{string(p.by), "resource"} // sorted: both values of By come before resource
	}
	m := p.stats.Seal()
	s.now = m.Now
	each, view := s.each, s.view // allocated once, instead of once per resource
	in := newInbound(p.conventions, to, m.Resources)
	for _, s.resource = range m.Resources {
		s.exemplars = s.resource.Exemplars()
		for _, s.metric = range p.list {
			switch {
			case s.metric.Each != nil:
				s.metric.Each(s.resource, each)
			// A histogram for each origin or entrance would be too many series.
			case s.metric.Type == table.Histogram && p.by != "":
				v := s.resource.View().Node()
				v.Snapshot(m.Now, &s.h)
				s.values[1] = s.resource.Name()
				to.Labels(s.names[1:], s.values[1:], v.Began())
				to.Distribution(&s.metric.family, &s.h, s.exemplars)
			}
		}
		switch p.by {
		case ByOrigin:
			s.resource.Origins()(view)
		case ByEntrance:
			s.resource.Entrances()(view)
		default:
			s.view("", s.resource.View())
		}
		if in != nil {
			v := s.resource.View().Node()
			if p.by != "" { // otherwise s.view has just read it
				v.SnapshotByCode(m.Now, nil, &s.reading.Codes)
			}
			in.add(s.resource, &s.reading.Codes, v.Began())
		}
	}
	if in != nil {
		in.flush()
	}
	if v := p.stats.Inbound().Node(); v.Used() {
		s.exemplars = nil
		s.all(p.inbound, v, nil, nil, &s.h)
	}
	p.SelfMetrics(to)
}

// scrape is one call of Gather.
type scrape struct {
	*Metrics
	to            Sink
	names, values []string // of the labels
	now           leap.Reading
	resource      *collector.Resource
	metric        *metric

	exemplars []collector.Exemplar
	reading   table.Reading
	coded     [2][3]string // names and values of the labels, with a code
	h         node.Histogram
}

// each emits a series of the metric with a label value. A counter appears with its first count: it was zero since the
// resource was created.
func (s *scrape) each(value string, n int64) bool {
	s.values[0], s.values[1] = value, s.resource.Name()
	names := s.metric.sorted
	s.to.Labels(names, s.values[2-len(names):], s.resource.View().Node().Began())
	s.to.Sample(&s.metric.family, float64(n))
	return true
}

// view emits a view of the resource, with its label value.
func (s *scrape) view(value string, view collector.View) bool {
	h := &s.h
	if s.by != "" {
		h = nil
	}
	s.values[0], s.values[1] = value, s.resource.Name()
	s.all(s.list, view.Node(), s.names, s.values[2-len(s.names):], h)
	return true
}

// all emits the given metrics from one snapshot of a view, with the histogram unless h is nil.
func (s *scrape) all(metrics []*metric, v *node.View, names, values []string, h *node.Histogram) {
	began := v.Began()
	s.reading.Set(v.SnapshotByCode(s.now, h, &s.reading.Codes))
	s.to.Labels(names, values, began)
	for _, m := range metrics {
		switch {
		case m.Value != nil:
			s.to.Sample(&m.family, m.Value(&s.reading))
		case m.ByCode:
			s.byCode(m, names, values, began)
		case m.Type == table.Histogram && h != nil:
			s.to.Distribution(&m.family, h, s.exemplars)
		}
	}
}

// byCode emits a metric for each code. The first series has no code and is always present.
func (s *scrape) byCode(m *metric, names, values []string, began time.Time) {
	coded := false
	for code, n := range s.reading.Codes.All() {
		if coded = code != 0; coded { // "code" is the first of the sorted names
			s.to.Labels(
				append(append(s.coded[0][:0], "code"), names...),
				append(append(s.coded[1][:0], collector.CodeName(code)), values...),
				began,
			)
		}
		s.to.Sample(&m.family, float64(n))
	}
	if coded {
		s.to.Labels(names, values, began)
	}
}

// Page returns a page with all metrics, from a pool.
func (p *Metrics) Page(pages *text.Pages, f text.Format) *text.Page {
	page := pages.Get(f, p.families...)
	p.Gather(page)
	return page
}
