package prom

import (
	"io"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/proto"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// points is a sink of samples with a time, for a page in protobuf: the one format that native histograms have.
type points struct {
	families []*dto.MetricFamily // by number of the metric
	pairs    []*dto.LabelPair
	ms       *int64 // the time
	samples  int
}

func (s *points) labels(names, values []string) { s.pairs = pairs(names, values) }

func (s *points) at(unix int64) { s.ms = proto.Int64(unix * 1000) }

func (s *points) value(m *metric, v float64) {
	s.add(m, dto.MetricType_GAUGE, &dto.Metric{Gauge: &dto.Gauge{Value: proto.Float64(v)}})
}

func (s *points) histogram(m *metric, h *node.Histogram, _ time.Time, _ []collector.Exemplar) {
	s.add(m, dto.MetricType_HISTOGRAM, &dto.Metric{Histogram: native(h)})
}

func (s *points) add(m *metric, kind dto.MetricType, x *dto.Metric) {
	for len(s.families) <= m.no {
		s.families = append(s.families, nil)
	}
	if s.families[m.no] == nil {
		s.families[m.no] = &dto.MetricFamily{Name: proto.String(m.name), Help: proto.String(m.Help), Type: kind.Enum()}
	}
	x.Label, x.TimestampMs = s.pairs, s.ms
	s.families[m.no].Metric = append(s.families[m.no].Metric, x)
	s.samples++
}

func (s *points) count() int { return s.samples }

func (s *points) writeTo(w io.Writer, _ []*metric) error {
	enc := expfmt.NewEncoder(w, expfmt.NewFormat(expfmt.TypeProtoDelim))
	for _, f := range s.families {
		if f == nil {
			continue
		}
		if err := enc.Encode(f); err != nil {
			return err
		}
	}
	return nil
}
