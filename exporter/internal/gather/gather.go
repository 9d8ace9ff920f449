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
	// Labels sets the labels of the samples that follow, sorted by name, and since when those count that count. The slices are
	// valid during the call.
	Labels(names, values []string, began time.Time)
	Value(m *Metric, v float64)
	// Histogram is the histogram of response times, with exemplars, the fastest first.
	Histogram(m *Metric, h *node.Histogram, exemplars []collector.Exemplar)
}

// Gather reads all metrics once and gives them to the sink. The samples of one view were read at one instant.
func (p *Metrics) Gather(to Sink) {
	s := scrape{Metrics: p, to: to, values: make([]string, 2)}
	s.names = []string{"resource"}
	if p.by != "" {
		s.names = []string{string(p.by), "resource"} // sorted, as both of them come before it
	}
	m := p.stats.Seal()
	s.now = m.Now
	labelled, view := s.labelled, s.view // allocated once, not for each resource
	for _, s.resource = range m.Resources {
		for _, s.metric = range p.List {
			switch {
			case s.metric.Labelled != nil:
				s.metric.Labelled(s.resource, labelled)
			case s.metric.Optional != nil:
				s.optional()
			}
		}
		if p.by != "" { // a histogram for each origin or entrance would be too many series
			s.resource.View().Node().Snapshot(m.Now, &s.h)
			s.values[1] = s.resource.Name()
			to.Labels(s.names[1:], s.values[1:], s.began())
			s.histogram(s.List, s.resource.Exemplars())
		}
		switch p.by {
		case ByOrigin:
			s.resource.Origins()(view)
		case ByEntrance:
			s.resource.Entrances()(view)
		default:
			s.view("", s.resource.View())
		}
	}
	s.total()
	p.SelfMetrics(to)
}

// scrape is one call of Gather.
type scrape struct {
	*Metrics
	to            Sink
	names, values []string // of labels
	now           leap.Reading
	resource      *collector.Resource
	metric        *Metric

	reading table.Reading
	coded   [2][3]string // names and values of labels, with a code
	h       node.Histogram
}

// began is since when the resource counts.
func (s *scrape) began() time.Time { return s.resource.View().Node().Began() }

// labelled emits a count of the resource by a label value, which is shown from the first count on: it was zero since the resource
// began.
func (s *scrape) labelled(value string, n int64) bool {
	s.values[0], s.values[1] = value, s.resource.Name()
	s.to.Labels(s.metric.sorted, s.values, s.began())
	s.to.Value(s.metric, float64(n))
	return true
}

// optional emits a metric that the resource may lack.
func (s *scrape) optional() {
	if v, ok := s.metric.Optional(s.resource); ok {
		s.values[1] = s.resource.Name()
		s.to.Labels(s.metric.Labels, s.values[1:], s.began())
		s.to.Value(s.metric, v)
	}
}

// view emits a view of the resource, with its value of the label.
func (s *scrape) view(name string, view collector.View) bool {
	v := view.Node()
	s.values[0], s.values[1] = name, s.resource.Name()
	values := s.values[2-len(s.names):]
	s.to.Labels(s.names, values, v.Began())
	if s.by == "" {
		s.reading.Set(v.SnapshotByCode(s.now, &s.h, &s.reading.Codes))
		s.histogram(s.List, s.resource.Exemplars())
	} else {
		s.reading.Set(v.SnapshotByCode(s.now, nil, &s.reading.Codes))
	}
	s.all(s.List, s.names, values, v.Began())
	return true
}

// total emits the metrics of all inbound traffic, once there was any.
func (s *scrape) total() {
	v := s.stats.Inbound().Node()
	if !v.Used() {
		return
	}
	s.reading.Set(v.SnapshotByCode(s.now, &s.h, &s.reading.Codes))
	s.to.Labels(nil, nil, v.Began())
	s.histogram(s.inbound, nil)
	s.all(s.inbound, nil, nil, v.Began())
}

// all emits what the reading has of some metrics since began, with labels that are set already.
func (s *scrape) all(metrics []*Metric, names, values []string, began time.Time) {
	for _, m := range metrics {
		switch {
		case m.Value != nil:
			s.to.Value(m, m.Value(&s.reading))
		case m.ByCode:
			s.byCode(m, names, values, began)
		}
	}
}

// byCode emits a metric for each code: the first series is that of no code, and is always there.
func (s *scrape) byCode(m *Metric, names, values []string, began time.Time) {
	coded := false
	for code, n := range s.reading.Codes.All() {
		if coded = code != 0; coded { // the label's name comes first of those that are sorted
			s.to.Labels(append(append(s.coded[0][:0], "code"), names...), append(append(s.coded[1][:0], collector.CodeName(code)), values...), began)
		}
		s.to.Value(m, float64(n))
	}
	if coded {
		s.to.Labels(names, values, began)
	}
}

// histogram emits the histogram of a view.
func (s *scrape) histogram(metrics []*Metric, exemplars []collector.Exemplar) {
	for _, m := range metrics {
		if m.Type == table.Histogram {
			s.to.Histogram(m, &s.h, exemplars)
		}
	}
}

// Page is a [Sink] that writes a text page. It writes no created timestamps: the text format has none, and those of OpenMetrics
// are lines of their own, each of which a server stores as a series unless it is configured to look for them. client_golang
// leaves them out, too.
type Page struct{ *text.Page }

// Labels implements [Sink].
func (p Page) Labels(names, values []string, _ time.Time) { p.Page.Labels(names, values) }

// Value implements [Sink].
func (p Page) Value(m *Metric, v float64) {
	p.Metric(&m.Family)
	p.Plain(v)
}

// Histogram implements [Sink].
func (p Page) Histogram(m *Metric, h *node.Histogram, exemplars []collector.Exemplar) {
	p.Metric(&m.Family)
	p.PlainHistogram(h, exemplars)
}
