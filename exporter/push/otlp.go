package push

import (
	"io"
	"net/http"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// OTLP is OpenTelemetry's protocol over HTTP, protobuf with gzip: for Prometheus with --web.enable-otlp-receiver
// (…/api/v1/otlp/v1/metrics), VictoriaMetrics (…/opentelemetry/v1/metrics), an OpenTelemetry Collector
// (…:4318/v1/metrics) and others.
//
// Each metric of a second is a gauge. Its name and its time, the start of the second, are the same as in all other
// exporters. In addition OTLP sends cumulative sums, such as windowstat_persecond_pass_total, and with
// [Options.Histogram] cumulative exponential histograms, such as windowstat_persecond_rt_seconds. They count since the
// process first used the resource, and have the time that OTLP requires, the end of the second. They are not sent for
// seconds from the metric log. The next sums and histograms that are sent include the counts of these seconds, unless
// the process has ended.
//
// The labels job and instance are the resource's service.name and service.instance.id. All labels, including these two,
// are attributes of the points. A receiver that keeps attributes unchanged therefore has the series under the same
// labels as Prometheus.
var OTLP Format = otlp{}

// OTLPDelta is [OTLP] with delta temporality. Sums and histograms, such as
// windowstat_persecond_rt_distribution_seconds, cover single seconds. Their times are a millisecond after the start of
// their second, so that increase() in Prometheus is exact, and its end.
// The gauges are the same. Sums and histograms are sent in separate requests, because some receivers refuse every
// request that contains a delta (Prometheus without --enable-feature=otlp-native-delta-ingestion).
var OTLPDelta Format = otlp{delta: true}

type otlp struct{ delta bool }

func (o otlp) name() string {
	if o.delta {
		return "otlp_delta"
	}
	return "otlp"
}

func (otlp) prepare(r *http.Request) {
	r.Header.Set("Content-Type", "application/x-protobuf")
	r.Header.Set("Content-Encoding", "gzip")
}

func (o otlp) encoder() encoder {
	return &otlpEncoder{delta: o.delta, metrics: map[string]*otlpMetric{}}
}

func (o otlp) temporality() (sums, histograms seconds.Temporality) {
	if o.delta {
		return seconds.Single, seconds.Single
	}
	return seconds.Cumulative, seconds.Cumulative
}

func (o otlp) group(f *table.Family) group {
	switch {
	case otlpKinds[f.Type] == otlpHistogram:
		return histograms
	case o.delta && f.Type == table.Counter:
		return deltas
	}
	return values
}

// The fields of ExportMetricsServiceResponse (collector/metrics/v1/metrics_service.proto).
const (
	responsePartialSuccess = 1
	partialRejected        = 1 // number of data points; a sample is a data point
	partialMessage         = 2
)

// judge implements Format. It reads the partial success of the response.
func (otlp) judge(status int, h http.Header, body []byte, r *request) (v verdict, rejected int64, message string) {
	if v = judge(status, h, body, r.doubt); v == accepted {
		rejected, message = partialSuccess(body)
	}
	return v, rejected, message
}

// partialSuccess returns the number of samples that the server dropped, and the message about the request.
func partialSuccess(body []byte) (samples int64, message string) {
	eachField(body, func(no protowire.Number, _ uint64, partial []byte) {
		if no != responsePartialSuccess {
			return
		}
		eachField(partial, func(no protowire.Number, v uint64, text []byte) {
			switch no {
			case partialRejected:
				samples = int64(v)
			case partialMessage:
				message = string(text)
			}
		})
	})
	return samples, message
}

// The fields of OTLP's messages (collector/metrics/v1/metrics_service.proto, metrics/v1/metrics.proto, resource/v1 and
// common/v1).
const (
	requestResources                           = 1
	resourceMetricsOf, resourceMetricsScopes   = 1, 2
	scopeMetrics                               = 2
	resourceAttributes                         = 1
	attributeKey, attributeValue, stringValue  = 1, 2, 1
	metricTitle, metricDescription, metricUnit = 1, 2, 3
	dataPoints, dataTemporality, dataMonotonic = 1, 2, 3 // of a Gauge, a Sum and an ExponentialHistogram
	pointStart, pointTime, pointDouble         = 2, 3, 4
	pointAttributes, histogramAttributes       = 7, 1

	exponentialCount, exponentialSum, exponentialScale, exponentialZero, exponentialPositive = 4, 5, 6, 7, 8

	bucketsOffset, bucketsCounts = 1, 2

	delta, cumulative = 1, 2 // temporality
)

// The kinds of data of a metric, by their field numbers.
const otlpGauge, otlpSum, otlpHistogram protowire.Number = 5, 7, 10

var otlpKinds = map[table.Type]protowire.Number{
	table.Gauge: otlpGauge, table.Counter: otlpSum, table.Histogram: otlpHistogram, table.GaugeHistogram: otlpHistogram,
}

// otlpEncoder encodes an ExportMetricsServiceRequest with one resource, because all series of a request belong to one
// process. Points are collected by metric. Their memory is reused for the next request.
type otlpEncoder struct {
	delta   bool
	metrics map[string]*otlpMetric // by name
	order   []*otlpMetric          // metrics in the order of their first series
	samples int

	// The current series.
	metric        *otlpMetric
	attributes    []byte // encoded attributes of each point
	start         int64  // Unix time; 0 if the series is not cumulative
	job, instance string

	point, buckets []byte
	body           []byte
	zipped
}

// otlpMetric is a metric with its points.
type otlpMetric struct {
	*table.Family
	kind protowire.Number
	data []byte // message of this kind; empty without points
}

// Reset implements encoder.
func (e *otlpEncoder) Reset() {
	for _, m := range e.order {
		m.data = m.data[:0]
	}
	e.samples = 0
}

// Samples implements encoder.
func (e *otlpEncoder) Samples() int { return e.samples }

// Series implements seconds.Sink.
func (e *otlpEncoder) Series(f *table.Family, names, values []string) {
	m := e.metrics[f.Name]
	if m == nil {
		m = &otlpMetric{Family: f, kind: otlpKinds[f.Type]}
		e.metrics[f.Name] = m
		e.order = append(e.order, m)
	}
	field := protowire.Number(pointAttributes)
	if m.kind == otlpHistogram {
		field = histogramAttributes
	}
	e.metric, e.attributes, e.start = m, e.attributes[:0], 0
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

// Start implements seconds.Starter.
func (e *otlpEncoder) Start(unix int64) { e.start = unix }

// Value implements seconds.Sink.
func (e *otlpEncoder) Value(unix int64, v float64) {
	e.add(appendDouble(e.begin(unix), pointDouble, v))
}

// Histogram implements seconds.Sink. The buckets are dense. OTLP numbers a bucket by its lower bound, so the bucket
// with the index i is i-1 in OTLP.
func (e *otlpEncoder) Histogram(unix int64, h *node.Histogram) {
	b := appendFixed(e.begin(unix), exponentialCount, uint64(h.Count()))
	b = appendDouble(b, exponentialSum, h.Sum().Seconds())
	b = appendVarint(b, exponentialScale, protowire.EncodeZigZag(node.NativeSchema))
	b = appendFixed(b, exponentialZero, uint64(h.Zero()))
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
		b = appendHead(b, exponentialPositive, sizeVarint(bucketsOffset, offset)+sizeString(bucketsCounts, counts))
		b = appendString(appendVarint(b, bucketsOffset, offset), bucketsCounts, counts)
	}
	e.add(b)
}

// begin encodes the attributes and times of a point of the current series. A gauge has the start of its second. A delta
// has the start of its second plus [deltaOffset] and the end of its second. The time of a cumulative point is the end
// of a second already.
func (e *otlpEncoder) begin(unix int64) []byte {
	const nanoseconds = 1e9
	start := uint64(e.start) * nanoseconds
	if e.delta && e.metric.kind != otlpGauge {
		start, unix = uint64(unix)*nanoseconds+uint64(deltaOffset), unix+1
	}
	b := append(e.point[:0], e.attributes...)
	if start != 0 {
		b = appendFixed(b, pointStart, start)
	}
	return appendFixed(b, pointTime, uint64(unix)*nanoseconds)
}

// add adds a point to the metric of the current series.
func (e *otlpEncoder) add(point []byte) {
	m := e.metric
	if len(m.data) == 0 && m.kind != otlpGauge {
		temporality := uint64(cumulative)
		if e.delta {
			temporality = delta
		}
		m.data = appendVarint(m.data, dataTemporality, temporality)
		if m.kind == otlpSum {
			m.data = appendVarint(m.data, dataMonotonic, 1)
		}
	}
	m.data = appendString(m.data, dataPoints, point)
	e.point = point
	e.samples++
}

// Body implements encoder.
func (e *otlpEncoder) Body() []byte {
	b := e.body[:0]
	for _, m := range e.order {
		if len(m.data) > 0 {
			b = m.append(b)
		}
	}
	e.body = b
	resource := appendAttribute(nil, resourceAttributes, "service.name", e.job)
	resource = appendAttribute(resource, resourceAttributes, "service.instance.id", e.instance)
	resource = appendHead(appendString(nil, resourceMetricsOf, resource), resourceMetricsScopes, len(b))
	head := append(appendHead(nil, requestResources, len(resource)+len(b)), resource...)
	return e.zip(func(w io.Writer) {
		_, _ = w.Write(head)
		_, _ = w.Write(b)
	})
}

// append appends the metric to the metrics of a scope.
func (m *otlpMetric) append(b []byte) []byte {
	unit := ""
	switch {
	case strings.HasSuffix(strings.TrimSuffix(m.Name, "_total"), "_seconds"):
		unit = "s"
	case m.Calls:
		unit = "{call}"
	}
	size := sizeString(metricTitle, m.Name) + sizeString(metricDescription, m.Help) + sizeString(metricUnit, unit)
	b = appendHead(b, scopeMetrics, size+sizeString(m.kind, m.data))
	b = appendString(b, metricTitle, m.Name)
	b = appendString(b, metricDescription, m.Help)
	b = appendString(b, metricUnit, unit)
	return appendString(b, m.kind, m.data)
}

// appendAttribute appends a KeyValue with a string.
func appendAttribute(b []byte, field protowire.Number, key, value string) []byte {
	text := sizeString(stringValue, value)
	b = appendHead(b, field, sizeString(attributeKey, key)+protowire.SizeTag(attributeValue)+protowire.SizeBytes(text))
	b = appendHead(appendString(b, attributeKey, key), attributeValue, text)
	return appendString(b, stringValue, value)
}
