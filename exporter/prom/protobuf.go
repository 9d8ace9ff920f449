package prom

import (
	"io"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/proto"

	"github.com/windowstat/windowstat/exporter/internal/native"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// protobufPage is a per-second page in protobuf, the only format with native histograms.
type protobufPage struct {
	families map[*table.Family]*dto.MetricFamily
	order    []*dto.MetricFamily
	current  *dto.MetricFamily
	pairs    []*dto.LabelPair
	samples  int
}

func newProtobufPage() *protobufPage {
	return &protobufPage{families: map[*table.Family]*dto.MetricFamily{}}
}

// Series implements seconds.Sink.
func (s *protobufPage) Series(f *table.Family, names, values []string) {
	s.pairs = pairs(names, values)
	if s.current = s.families[f]; s.current == nil {
		kinds := map[table.Type]dto.MetricType{
			table.Counter: dto.MetricType_COUNTER, table.Gauge: dto.MetricType_GAUGE, table.GaugeHistogram: dto.MetricType_GAUGE_HISTOGRAM,
		}
		s.current = &dto.MetricFamily{Name: proto.String(f.Name), Help: proto.String(f.Help), Type: kinds[f.Type].Enum()}
		s.families[f] = s.current
		s.order = append(s.order, s.current)
	}
}

// Value implements seconds.Sink.
func (s *protobufPage) Value(unix int64, v float64) {
	if s.current.GetType() == dto.MetricType_COUNTER {
		s.add(unix, &dto.Metric{Counter: &dto.Counter{Value: proto.Float64(v)}})
	} else {
		s.add(unix, &dto.Metric{Gauge: &dto.Gauge{Value: proto.Float64(v)}})
	}
}

// Histogram implements seconds.Sink.
func (s *protobufPage) Histogram(unix int64, h *node.Histogram) {
	s.add(unix, &dto.Metric{Histogram: native.Histogram(h)})
}

func (s *protobufPage) add(unix int64, m *dto.Metric) {
	m.Label, m.TimestampMs = s.pairs, proto.Int64(unix*1000)
	s.current.Metric = append(s.current.Metric, m)
	s.samples++
}

// write writes the page, and returns the number of samples.
func (s *protobufPage) write(w io.Writer) (samples int, err error) {
	enc := expfmt.NewEncoder(w, expfmt.NewFormat(expfmt.TypeProtoDelim))
	for _, f := range s.order {
		if len(f.Metric) == 0 {
			continue
		}
		if err := enc.Encode(f); err != nil {
			return s.samples, err
		}
	}
	return s.samples, nil
}
