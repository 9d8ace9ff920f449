package prom

import (
	"math"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/text"
	"github.com/windowstat/windowstat/exporter/internal/walk"
	"github.com/windowstat/windowstat/node"
)

// metrics is a sink that makes a prometheus.Metric of each sample. They are cheaper than client_golang's const metrics:
// those of one view share their labels.
type metrics struct {
	ch    chan<- prometheus.Metric
	descs []desc
	pairs []*dto.LabelPair
}

// Labels implements walk.Sink.
func (s *metrics) Labels(names, values []string) {
	s.pairs = pairs(names, values)
}

func pairs(names, values []string) []*dto.LabelPair {
	list := make([]*dto.LabelPair, len(names))
	for i, name := range names {
		list[i] = &dto.LabelPair{Name: proto.String(name), Value: proto.String(values[i])}
	}
	return list
}

// Value implements walk.Sink.
func (s *metrics) Value(m *walk.Metric, v float64) {
	s.ch <- &sample{desc: &s.descs[m.No], pairs: s.pairs, v: v}
}

// sample is a counter or a gauge.
type sample struct {
	desc  *desc
	pairs []*dto.LabelPair
	v     float64
}

// Desc implements prometheus.Metric.
func (s *sample) Desc() *prometheus.Desc { return s.desc.Desc }

// Write implements prometheus.Metric.
func (s *sample) Write(out *dto.Metric) error {
	out.Label = s.pairs
	if s.desc.kind == prometheus.CounterValue {
		out.Counter = &dto.Counter{Value: &s.v}
	} else {
		out.Gauge = &dto.Gauge{Value: &s.v}
	}
	return nil
}

// distribution is a histogram, native and classic in one.
type distribution struct {
	desc  *desc
	pairs []*dto.LabelPair
	h     *dto.Histogram
}

// Desc implements prometheus.Metric.
func (d *distribution) Desc() *prometheus.Desc { return d.desc.Desc }

// Write implements prometheus.Metric.
func (d *distribution) Write(out *dto.Metric) error {
	out.Label, out.Histogram = d.pairs, d.h
	return nil
}

// zeroThreshold is client_golang's default. The zero bucket holds response times of 0 alone.
const zeroThreshold = prometheus.DefNativeHistogramZeroThreshold

// Histogram implements walk.Sink.
func (s *metrics) Histogram(m *walk.Metric, h *node.Histogram, began time.Time, exemplars []collector.Exemplar) {
	out := native(h)
	out.CreatedTimestamp = timestamppb.New(began)
	rest := exemplars
	bucket := func(bound float64, n int64) *dto.Bucket {
		b := &dto.Bucket{CumulativeCount: proto.Uint64(uint64(n)), UpperBound: proto.Float64(bound)}
		if len(rest) > 0 && rest[0].RT.Seconds() <= bound {
			b.Exemplar, rest = exemplar(rest[0]), rest[1:]
		}
		return b
	}
	for bound, n := range h.Classic() {
		out.Bucket = append(out.Bucket, bucket(bound.Seconds(), n))
	}
	if len(rest) > 0 { // otherwise it is left to whoever writes the page, as in client_golang
		out.Bucket = append(out.Bucket, bucket(math.Inf(1), h.Count()))
	}
	byTime := slices.SortedFunc(slices.Values(exemplars), func(a, b collector.Exemplar) int { return a.At.Compare(b.At) })
	for _, x := range byTime {
		out.Exemplars = append(out.Exemplars, exemplar(x))
	}
	s.ch <- &distribution{desc: &s.descs[m.No], pairs: s.pairs, h: out}
}

func exemplar(x collector.Exemplar) *dto.Exemplar {
	return &dto.Exemplar{
		Label: pairs([]string{text.TraceLabel}, []string{x.TraceID}), Value: proto.Float64(x.RT.Seconds()), Timestamp: timestamppb.New(x.At),
	}
}

// native makes a native histogram.
func native(h *node.Histogram) *dto.Histogram {
	out := &dto.Histogram{
		SampleCount:   proto.Uint64(uint64(h.Count())),
		SampleSum:     proto.Float64(h.Sum().Seconds()),
		Schema:        proto.Int32(node.NativeSchema),
		ZeroThreshold: proto.Float64(zeroThreshold),
		ZeroCount:     proto.Uint64(uint64(h.Zero())),
	}
	spans(out, h)
	return out
}

// spans sets the native buckets: runs of buckets that follow each other, and the counts as differences.
func spans(out *dto.Histogram, h *node.Histogram) {
	var next int
	var last int64
	for i, n := range h.Native() {
		if gap := i - next; len(out.PositiveSpan) == 0 || gap > maxGap {
			out.PositiveSpan = append(out.PositiveSpan, &dto.BucketSpan{Offset: proto.Int32(int32(gap)), Length: proto.Uint32(0)})
			next = i
		}
		span := out.PositiveSpan[len(out.PositiveSpan)-1]
		for ; next < i; next++ { // a small hole is cheaper as empty buckets
			out.PositiveDelta = append(out.PositiveDelta, -last)
			last = 0
			*span.Length++
		}
		out.PositiveDelta = append(out.PositiveDelta, n-last)
		last = n
		*span.Length++
		next++
	}
	if len(out.PositiveSpan) == 0 && h.Zero() == 0 {
		// A histogram without observations needs a span of nothing, to be known as native.
		out.PositiveSpan = []*dto.BucketSpan{{Offset: proto.Int32(0), Length: proto.Uint32(0)}}
	}
}

// maxGap is the most empty buckets in a row that a span takes in, as in client_golang.
const maxGap = 2
