package push

import (
	"bytes"
	"errors"
	"math"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// The fields of the messages of OTLP (metrics/v1/metrics.proto, resource/v1 and common/v1).
const (
	requestResources  = 1
	resourceOf        = 1 // of ResourceMetrics
	resourceScopes    = 2
	scopeMetrics      = 2
	resourceAttribute = 1
	attributeKey      = 1
	attributeValue    = 2
	anyString         = 1

	otlpName                 = 1
	otlpDescription          = 2
	otlpUnit                 = 3
	otlpGauge                = 5
	otlpSum                  = 7
	otlpExponentialHistogram = 10

	// of a Gauge, a Sum and an ExponentialHistogram
	otlpPoints      = 1
	otlpTemporality = 2
	otlpMonotonic   = 3

	// of a NumberDataPoint and an ExponentialHistogramDataPoint
	pointStart           = 2
	pointTime            = 3
	pointDouble          = 4
	pointAttributes      = 7
	histogramAttributes  = 1
	otlpHistogramCount   = 4
	otlpHistogramSum     = 5
	otlpHistogramScale   = 6
	otlpHistogramZero    = 7
	otlpHistogramBuckets = 8
	bucketsOffset        = 1
	bucketsCounts        = 2

	temporalityDelta      = 1
	temporalityCumulative = 2
)

// otlpEncoder encodes an ExportMetricsServiceRequest with one resource: the series of a request are those of one process. Points are
// collected by metric, and keep their memory for the next request.
type otlpEncoder struct {
	delta   bool
	metrics map[string]*otlpMetric // by name
	order   []*otlpMetric          // of metrics, as they came
	samples int

	// Of the present series.
	metric        *otlpMetric
	attributes    []byte // of each point
	start         int64  // Unix time; 0 for one that is not cumulative
	job, instance string

	point, buckets []byte
	body           []byte
	zipped         bytes.Buffer
}

// otlpMetric is a metric with its points.
type otlpMetric struct {
	*table.Family
	data   []byte // a Gauge, a Sum or an ExponentialHistogram
	points int
}

// Reset implements encoder.
func (e *otlpEncoder) Reset() {
	for _, m := range e.order {
		m.data, m.points = m.data[:0], 0
	}
	e.samples = 0
}

// Samples implements encoder.
func (e *otlpEncoder) Samples() int { return e.samples }

// Series implements seconds.Sink.
func (e *otlpEncoder) Series(f *table.Family, names, values []string) {
	m := e.metrics[f.Name]
	if m == nil {
		m = &otlpMetric{Family: f}
		e.metrics[f.Name] = m
		e.order = append(e.order, m)
	}
	if e.metric = m; len(m.data) == 0 {
		m.data = e.kind(m.data, f.Type)
	}
	field := protowire.Number(pointAttributes)
	if m.histogram() {
		field = histogramAttributes
	}
	e.attributes, e.start = e.attributes[:0], 0
	for i, name := range names {
		switch name {
		case "job":
			e.job = values[i]
		case "instance":
			e.instance = values[i]
		}
		e.attributes = appendAttribute(e.attributes, field, name, values[i])
	}
}

// kind appends the fields of a Sum or an ExponentialHistogram beside its points.
func (e *otlpEncoder) kind(b []byte, of table.Type) []byte {
	if of == table.Gauge {
		return b
	}
	temporality := uint64(temporalityCumulative)
	if e.delta {
		temporality = temporalityDelta
	}
	b = appendUint(b, otlpTemporality, temporality)
	if of == table.Counter {
		b = appendUint(b, otlpMonotonic, 1)
	}
	return b
}

func (m *otlpMetric) histogram() bool {
	return m.Type == table.Histogram || m.Type == table.GaugeHistogram
}

// Start implements seconds.Starter.
func (e *otlpEncoder) Start(unix int64) { e.start = unix }

// Value implements seconds.Sink.
func (e *otlpEncoder) Value(unix int64, v float64) {
	e.add(appendFixed(e.begin(unix), pointDouble, math.Float64bits(v)))
}

// Histogram implements seconds.Sink. The buckets are dense, and one with the index i is called i-1 in OTLP, by its lower bound.
func (e *otlpEncoder) Histogram(unix int64, h *node.Histogram) {
	b := e.begin(unix)
	b = appendFixed(b, otlpHistogramCount, uint64(h.Count()))
	b = appendFixed(b, otlpHistogramSum, math.Float64bits(h.Sum().Seconds()))
	b = appendUint(b, otlpHistogramScale, protowire.EncodeZigZag(node.NativeSchema))
	b = appendFixed(b, otlpHistogramZero, uint64(h.Zero()))
	counts := e.buckets[:0]
	first, next := 0, 0
	for i, n := range h.Native() {
		if len(counts) == 0 {
			first, next = i, i
		}
		for ; next < i; next++ {
			counts = append(counts, 0)
		}
		counts = protowire.AppendVarint(counts, uint64(n))
		next++
	}
	if e.buckets = counts; len(counts) > 0 {
		offset := protowire.EncodeZigZag(int64(first - 1))
		size := protowire.SizeTag(bucketsOffset) + protowire.SizeVarint(offset) + protowire.SizeTag(bucketsCounts) + protowire.SizeBytes(len(counts))
		b = appendHead(b, otlpHistogramBuckets, size)
		b = appendString(appendUint(b, bucketsOffset, offset), bucketsCounts, counts)
	}
	e.add(b)
}

// begin begins a point of the present series: its attributes and times. A gauge has the start of its second, a delta the second from
// its start to its end, and the time of what is cumulative is the end of a second already.
func (e *otlpEncoder) begin(unix int64) []byte {
	const nanoseconds = 1e9
	start := e.start
	if e.delta && e.metric.Type != table.Gauge {
		start, unix = unix, unix+1
	}
	b := append(e.point[:0], e.attributes...)
	if start != 0 {
		b = appendFixed(b, pointStart, uint64(start)*nanoseconds)
	}
	return appendFixed(b, pointTime, uint64(unix)*nanoseconds)
}

// add adds a point to the metric of the present series.
func (e *otlpEncoder) add(point []byte) {
	e.point = point
	e.metric.data = appendString(e.metric.data, otlpPoints, point)
	e.metric.points++
	e.samples++
}

// Body implements encoder.
func (e *otlpEncoder) Body() ([]byte, error) {
	b := e.body[:0]
	for _, m := range e.order {
		if m.points > 0 {
			b = m.append(b)
		}
	}
	e.body = b
	resource := appendAttribute(nil, resourceAttribute, "service.name", e.job)
	resource = appendAttribute(resource, resourceAttribute, "service.instance.id", e.instance)
	resource = appendHead(appendString(nil, resourceOf, resource), resourceScopes, len(b))
	e.zipped.Reset()
	z, end := zips.Start(&e.zipped)
	_, err := z.Write(append(appendHead(nil, requestResources, len(resource)+len(b)), resource...))
	if err == nil {
		_, err = z.Write(b)
	}
	err = errors.Join(err, end())
	return e.zipped.Bytes(), err
}

// append appends the metric, as one of its scope.
func (m *otlpMetric) append(b []byte) []byte {
	unit, kind := "", protowire.Number(otlpGauge)
	if strings.HasSuffix(m.Name, "_seconds") {
		unit = "s"
	}
	switch {
	case m.histogram():
		kind = otlpExponentialHistogram
	case m.Type == table.Counter:
		kind = otlpSum
	}
	size := protowire.SizeTag(kind) + protowire.SizeBytes(len(m.data))
	for _, text := range []string{m.Name, m.Help, unit} {
		size += protowire.SizeTag(otlpName) + protowire.SizeBytes(len(text))
	}
	b = appendHead(b, scopeMetrics, size)
	b = appendString(b, otlpName, m.Name)
	b = appendString(b, otlpDescription, m.Help)
	b = appendString(b, otlpUnit, unit)
	return appendString(b, kind, m.data)
}

// appendAttribute appends a KeyValue with a string.
func appendAttribute(b []byte, field protowire.Number, key, value string) []byte {
	text := protowire.SizeTag(anyString) + protowire.SizeBytes(len(value))
	b = appendHead(b, field, protowire.SizeTag(attributeKey)+protowire.SizeBytes(len(key))+protowire.SizeTag(attributeValue)+protowire.SizeBytes(text))
	b = appendString(b, attributeKey, key)
	return appendString(appendHead(b, attributeValue, text), anyString, value)
}

// appendHead appends what is before a message of this size.
func appendHead(b []byte, field protowire.Number, size int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.BytesType), uint64(size))
}

func appendString[T string | []byte](b []byte, field protowire.Number, text T) []byte {
	return append(appendHead(b, field, len(text)), text...)
}

func appendUint(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
}

func appendFixed(b []byte, field protowire.Number, v uint64) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), v)
}
