package prom

import (
	"io"
	"net/http"
	"slices"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"google.golang.org/protobuf/proto"

	"github.com/windowstat/windowstat/exporter/internal/gzipped"
	"github.com/windowstat/windowstat/exporter/internal/native"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/exporter/internal/text"
	"github.com/windowstat/windowstat/node"
)

// page renders the seconds in [from, open), up to the limit, and returns the first second that it did not render. The
// number of lines of a vmrange histogram is unknown in advance, so a page that becomes too large is rendered again with
// fewer seconds.
func (s *Seconds) page(r *http.Request, q query, from, open int64, limit seconds.Limit) (c *content, to int64) {
	emit := func(sink seconds.Sink) {
		to = open
		for _, stream := range s.streams {
			to = stream.Emit(&q.Selection, from, to, limit, sink)
		}
	}
	zip := gzipped.Accepted(r)
	format := expfmt.NegotiateIncludingOpenMetrics(r.Header)
	// Names of a Sampler may need quotes or escaping. Other schemes of escaping than "values" can make two names equal.
	quotes, scheme := format.ToEscapingScheme() == model.NoEscaping, model.ValueEncodingEscaping
	if quotes {
		scheme = model.NoEscaping
	}
	if q.native() {
		page := protobufPage{families: map[*table.Family]*dto.MetricFamily{}, quotes: quotes}
		emit(&page)
		format := expfmt.NewFormat(expfmt.TypeProtoDelim).WithEscapingScheme(scheme)
		return s.out.render(format, zip, nil, page.all()), to
	}
	kind, plain := dialect(format)
	if q.ranges { // VictoriaMetrics accepts quoted names
		kind, quotes, scheme = text.VictoriaMetrics, true, model.NoEscaping
	}
	if q.ranges || !plain {
		format = expfmt.NewFormat(expfmt.TypeTextPlain)
	}
	format = format.WithEscapingScheme(scheme)
	var page *text.Page
	for {
		page = s.out.pages.Get(kind)
		if quotes {
			page.QuoteNames()
		}
		if s.self != nil {
			s.self.SelfMetrics(page)
		}
		emit(page)
		n := s.line.Count(from, to)
		if !q.ranges || n <= 1 {
			break
		}
		length, _ := page.WriteTo(io.Discard)
		// Render a tenth fewer seconds than should fit. The seconds differ in size, and a third rendering would cost as
		// much as the first.
		over := max(float64(page.Samples())/float64(limit.Samples), float64(length)/float64(limit.Bytes))
		if over <= 1 {
			break
		}
		limit.Seconds = max(int64(0.9*float64(n)/over), 1)
		s.out.pages.Put(page)
	}
	return s.out.render(format, zip, page, nil), to
}

// protobufPage is a per-second page in protobuf, the only format with native histograms.
type protobufPage struct {
	quotes   bool // the client accepts all names
	families map[*table.Family]*dto.MetricFamily
	order    []*dto.MetricFamily
	current  *dto.MetricFamily
	pairs    []*dto.LabelPair
}

// Series implements seconds.Sink.
func (s *protobufPage) Series(f *table.Family, names, values []string) {
	s.pairs = pairs(names, values)
	for _, l := range s.pairs {
		if !s.quotes && !model.LegacyValidation.IsValidLabelName(l.GetName()) { // expfmt would keep colons
			l.Name = proto.String(text.EscapeLabel(l.GetName()))
		}
	}
	// A stream emits a family once for each resource, but a page must have each family once.
	if s.current = s.families[f]; s.current == nil {
		kind := dto.MetricType_GAUGE
		if f.Type == table.GaugeHistogram {
			kind = dto.MetricType_GAUGE_HISTOGRAM
		}
		s.current = &dto.MetricFamily{Name: proto.String(f.Name), Help: proto.String(f.Help), Type: &kind}
		s.families[f] = s.current
		s.order = append(s.order, s.current)
	}
}

// Value implements seconds.Sink. Every value is a gauge, because it belongs to a single second. Pages do not have the
// counters of [seconds.Selection].Sums.
func (s *protobufPage) Value(unix int64, v float64) {
	s.add(unix, &dto.Metric{Gauge: &dto.Gauge{Value: proto.Float64(v)}})
}

// Histogram implements seconds.Sink.
func (s *protobufPage) Histogram(unix int64, h *node.Histogram) {
	s.add(unix, &dto.Metric{Histogram: native.Histogram(h)})
}

func (s *protobufPage) add(unix int64, m *dto.Metric) {
	m.Label, m.TimestampMs = s.pairs, proto.Int64(unix*1000)
	s.current.Metric = append(s.current.Metric, m)
}

// all returns the families with samples.
func (s *protobufPage) all() []*dto.MetricFamily {
	return slices.DeleteFunc(s.order, func(f *dto.MetricFamily) bool { return len(f.Metric) == 0 })
}
