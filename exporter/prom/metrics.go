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
	"github.com/windowstat/windowstat/exporter/internal/native"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/exporter/internal/text"
	"github.com/windowstat/windowstat/node"
)

// metrics is a gather.Sink that converts samples into prometheus.Metrics. They are cheaper than client_golang's
// constant metrics, because they are allocated in slabs.
type metrics struct {
	ch    chan<- prometheus.Metric
	p     *Collector
	pairs []*dto.LabelPair

	began    time.Time
	created  *timestamppb.Timestamp // began as a protobuf timestamp
	counters []counterSample        // unused elements of a slab
	gauges   []gaugeSample
	bounds   []float64 // bounds of the classic buckets of all histograms
}

// Labels implements gather.Sink.
func (s *metrics) Labels(names, values []string, began time.Time) {
	s.pairs = pairs(names, values)
	if s.created == nil || !began.Equal(s.began) {
		s.began, s.created = began, timestamppb.New(began)
	}
}

// pairs returns label pairs, with two allocations.
func pairs(names, values []string) []*dto.LabelPair {
	if len(names) == 0 {
		return nil
	}
	list := make([]*dto.LabelPair, len(names))
	all := make([]struct {
		pair        dto.LabelPair
		name, value string
	}, len(names))
	for i := range all {
		x := &all[i]
		x.name, x.value = names[i], values[i]
		x.pair.Name, x.pair.Value = &x.name, &x.value
		list[i] = &x.pair
	}
	return list
}

// Sample implements gather.Sink.
func (s *metrics) Sample(f *table.Family, v float64) {
	d, pairs := s.p.desc(f), s.pairs
	if len(pairs) < len(f.Labels) {
		pairs = append(noCode[:1:1], pairs...)
	}
	if f.Type == table.Counter {
		x := next(&s.counters)
		x.sample, x.v, x.out.CreatedTimestamp = sample{d, pairs}, v, s.created
		s.ch <- x
	} else {
		x := next(&s.gauges)
		x.sample, x.v = sample{d, pairs}, v
		s.ch <- x
	}
}

// noCode is the label of calls without a code. A pedantic registry requires the same label names for all series of a
// metric, and servers treat an empty label as absent.
var noCode = pairs([]string{"code"}, []string{""})

// next returns an unused element of a slab, and allocates a new slab when the old one is used up.
func next[T any](slab *[]T) *T {
	const size = 32
	if len(*slab) == 0 {
		*slab = make([]T, size)
	}
	x := &(*slab)[0]
	*slab = (*slab)[1:]
	return x
}

// sample holds the fields that all kinds of samples share.
type sample struct {
	desc  *prometheus.Desc
	pairs []*dto.LabelPair
}

// Desc implements prometheus.Metric.
func (s *sample) Desc() *prometheus.Desc { return s.desc }

type counterSample struct {
	sample
	v   float64
	out dto.Counter
}

// Write implements prometheus.Metric.
func (s *counterSample) Write(out *dto.Metric) error {
	s.out.Value = &s.v
	out.Label, out.Counter = s.pairs, &s.out
	return nil
}

type gaugeSample struct {
	sample
	v   float64
	out dto.Gauge
}

// Write implements prometheus.Metric.
func (s *gaugeSample) Write(out *dto.Metric) error {
	s.out.Value = &s.v
	out.Label, out.Gauge = s.pairs, &s.out
	return nil
}

// distribution is a histogram with native and classic buckets.
type distribution struct {
	sample
	out *dto.Histogram
}

// Write implements prometheus.Metric.
func (s *distribution) Write(out *dto.Metric) error {
	out.Label, out.Histogram = s.pairs, s.out
	return nil
}

// Distribution implements gather.Sink.
func (s *metrics) Distribution(f *table.Family, h *node.Histogram, exemplars []collector.Exemplar) {
	if s.bounds == nil {
		for bound := range h.Classic() {
			s.bounds = append(s.bounds, bound.Seconds())
		}
		s.bounds = append(s.bounds, math.Inf(1))
	}
	out := native.Histogram(h)
	out.CreatedTimestamp = s.created
	out.Bucket = make([]*dto.Bucket, 0, len(s.bounds))
	buckets := make([]struct {
		dto.Bucket
		n uint64
	}, len(s.bounds))
	rest := exemplars
	add := func(n int64) {
		i := len(out.Bucket)
		b := &buckets[i]
		b.n = uint64(n)
		b.CumulativeCount, b.UpperBound = &b.n, &s.bounds[i]
		if len(rest) > 0 && rest[0].RT.Seconds() <= s.bounds[i] {
			b.Exemplar, rest = exemplar(rest[0]), rest[1:]
		}
		out.Bucket = append(out.Bucket, &b.Bucket)
	}
	for _, n := range h.Classic() {
		add(n)
	}
	if len(rest) > 0 { // otherwise the encoder adds +Inf, as in client_golang
		add(h.Count())
	}
	byTime := slices.SortedFunc(
		slices.Values(exemplars),
		func(a, b collector.Exemplar) int { return a.At.Compare(b.At) },
	)
	for _, x := range byTime {
		out.Exemplars = append(out.Exemplars, exemplar(x))
	}
	s.ch <- &distribution{sample{s.p.desc(f), s.pairs}, out}
}

func exemplar(x collector.Exemplar) *dto.Exemplar {
	return &dto.Exemplar{
		Label: pairs(
			[]string{text.TraceLabel},
			[]string{x.TraceID},
		), Value: proto.Float64(x.RT.Seconds()), Timestamp: timestamppb.New(x.At),
	}
}
