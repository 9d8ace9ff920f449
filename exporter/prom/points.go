package prom

import (
	"io"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/proto"

	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// points is a page of seconds in protobuf, the one format that native histograms have.
type points struct {
	families map[*table.Family]*dto.MetricFamily
	order    []*dto.MetricFamily
	now      *dto.MetricFamily
	pairs    []*dto.LabelPair
	samples  int
}

func newPoints() *points { return &points{families: map[*table.Family]*dto.MetricFamily{}} }

// Series implements seconds.Sink.
func (s *points) Series(f *table.Family, names, values []string) {
	s.pairs = pairs(names, values)
	if s.now = s.families[f]; s.now == nil {
		kinds := map[table.Type]dto.MetricType{
			table.Counter: dto.MetricType_COUNTER, table.Gauge: dto.MetricType_GAUGE, table.Histogram: dto.MetricType_HISTOGRAM,
		}
		s.now = &dto.MetricFamily{Name: proto.String(f.Name), Help: proto.String(f.Help), Type: kinds[f.Type].Enum()}
		s.families[f] = s.now
		s.order = append(s.order, s.now)
	}
}

// Value implements seconds.Sink.
func (s *points) Value(unix int64, v float64) {
	if s.now.GetType() == dto.MetricType_COUNTER {
		s.add(unix, &dto.Metric{Counter: &dto.Counter{Value: proto.Float64(v)}})
	} else {
		s.add(unix, &dto.Metric{Gauge: &dto.Gauge{Value: proto.Float64(v)}})
	}
}

// Histogram implements seconds.Sink.
func (s *points) Histogram(unix int64, h *node.Histogram) {
	s.add(unix, &dto.Metric{Histogram: native(h)})
}

func (s *points) add(unix int64, m *dto.Metric) {
	m.Label, m.TimestampMs = s.pairs, proto.Int64(unix*1000)
	s.now.Metric = append(s.now.Metric, m)
	s.samples++
}

// Samples is how many there are.
func (s *points) Samples() int { return s.samples }

// WriteTo implements io.WriterTo.
func (s *points) WriteTo(w io.Writer) (int64, error) {
	out := &counter{Writer: w}
	enc := expfmt.NewEncoder(out, expfmt.NewFormat(expfmt.TypeProtoDelim))
	for _, f := range s.order {
		if len(f.Metric) == 0 {
			continue
		}
		if err := enc.Encode(f); err != nil {
			return int64(out.n), err
		}
	}
	return int64(out.n), nil
}
