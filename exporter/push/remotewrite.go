package push

import (
	"net/http"
	"slices"

	"github.com/klauspost/compress/snappy"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/windowstat/windowstat/exporter/internal/native"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// RemoteWrite is Prometheus remote write 1.0: for Prometheus with --web.enable-remote-write-receiver, VictoriaMetrics,
// vmagent, Mimir, Thanos and others. It sends native histograms.
var RemoteWrite Format = remoteWrite{}

type remoteWrite struct {
	plain
	sums seconds.Temporality // cumulative after a fallback from version 2.0
}

func (remoteWrite) name() string { return "remote_write" }

func (remoteWrite) prepare(r *http.Request) {
	r.Header.Set("Content-Type", "application/x-protobuf")
	r.Header.Set("Content-Encoding", "snappy")
	r.Header.Set("X-Prometheus-Remote-Write-Version", "0.1.0")
}

func (remoteWrite) encoder() encoder { return new(remoteWriteEncoder) }

func (f remoteWrite) temporality() (sums, histograms seconds.Temporality) {
	return f.sums, seconds.Single
}

// The fields of the messages of remote write 1.0 (prompb/remote.proto and types.proto).
const (
	requestSeries    = 1
	seriesLabels     = 1
	seriesSamples    = 2
	seriesHistograms = 4
	labelName        = 1
	labelValue       = 2
	sampleValue      = 1
	sampleMillis     = 2
	metricName       = "__name__"
)

// remoteWriteEncoder encodes a WriteRequest, series by series. A series is complete before it is copied to out, because
// its length precedes it.
type remoteWriteEncoder struct {
	out     []byte // complete series
	series  []byte // current series, without its length
	empty   int    // length of the current series before its first sample
	samples int
	packed  []byte // compressed body

	histogram histogramEncoder
}

// Reset implements encoder.
func (e *remoteWriteEncoder) Reset() {
	e.out, e.series, e.empty, e.samples = e.out[:0], e.series[:0], 0, 0
}

// Samples implements encoder.
func (e *remoteWriteEncoder) Samples() int { return e.samples }

// Series implements seconds.Sink. Remote write requires sorted labels, including the name of the metric.
func (e *remoteWriteEncoder) Series(f *table.Family, names, values []string) {
	e.flush()
	at, _ := slices.BinarySearch(names, metricName) // upper case sorts before the underscore
	for i, name := range names[:at] {
		e.series = appendLabel(e.series, name, values[i])
	}
	e.series = appendLabel(e.series, metricName, f.Name)
	for i, name := range names[at:] {
		e.series = appendLabel(e.series, name, values[at+i])
	}
	e.empty = len(e.series)
}

// appendLabel appends a label to a series.
func appendLabel(b []byte, name, value string) []byte {
	b = appendHead(b, seriesLabels, sizeString(labelName, name)+sizeString(labelValue, value))
	return appendString(appendString(b, labelName, name), labelValue, value)
}

// Value implements seconds.Sink.
func (e *remoteWriteEncoder) Value(unix int64, v float64) {
	ms := uint64(unix * 1000)
	size := protowire.SizeTag(sampleValue) + protowire.SizeFixed64() + sizeVarint(sampleMillis, ms)
	b := appendHead(e.series, seriesSamples, size)
	e.series = appendVarint(appendDouble(b, sampleValue, v), sampleMillis, ms)
	e.samples++
}

// flush appends the current series to out, and drops it if it has no samples.
func (e *remoteWriteEncoder) flush() {
	if len(e.series) > e.empty {
		e.out = appendString(e.out, requestSeries, e.series)
	}
	e.series, e.empty = e.series[:0], 0
}

// Body implements encoder.
func (e *remoteWriteEncoder) Body() []byte {
	e.flush()
	e.packed = snappy.Encode(e.packed[:cap(e.packed)], e.out)
	return e.packed
}

// The fields of a histogram and of its spans (prompb/types.proto).
const (
	histogramCount     = 1
	histogramSum       = 3
	histogramSchema    = 4
	histogramThreshold = 5
	histogramZero      = 6
	histogramSpans     = 11
	histogramDeltas    = 12
	histogramReset     = 14
	histogramMillis    = 15
	spanOffset         = 1
	spanLength         = 2

	resetGauge = 3 // the histogram is independent of earlier samples
)

// Histogram implements seconds.Sink. It encodes a gauge histogram.
func (e *remoteWriteEncoder) Histogram(unix int64, h *node.Histogram) {
	e.series = appendString(e.series, seriesHistograms, e.histogram.encode(unix, h))
	e.samples++
}

// histogramEncoder encodes gauge histograms, which are equal in both versions of remote write. The zero value is ready
// to use.
type histogramEncoder struct {
	message []byte
	deltas  []byte // packed deltas of the buckets
}

// encode returns an encoded gauge histogram. It is valid until the next call.
func (e *histogramEncoder) encode(unix int64, h *node.Histogram) []byte {
	n := native.Histogram(h)
	b := appendVarint(e.message[:0], histogramCount, n.GetSampleCount())
	b = appendDouble(b, histogramSum, n.GetSampleSum())
	b = appendVarint(b, histogramSchema, protowire.EncodeZigZag(int64(n.GetSchema())))
	b = appendDouble(b, histogramThreshold, n.GetZeroThreshold())
	b = appendVarint(b, histogramZero, n.GetZeroCount())
	for _, s := range n.PositiveSpan {
		offset, length := protowire.EncodeZigZag(int64(s.GetOffset())), uint64(s.GetLength())
		b = appendHead(b, histogramSpans, sizeVarint(spanOffset, offset)+sizeVarint(spanLength, length))
		b = appendVarint(appendVarint(b, spanOffset, offset), spanLength, length)
	}
	deltas := e.deltas[:0]
	for _, d := range n.PositiveDelta {
		deltas = protowire.AppendVarint(deltas, protowire.EncodeZigZag(d))
	}
	if e.deltas = deltas; len(deltas) > 0 {
		b = appendString(b, histogramDeltas, deltas)
	}
	b = appendVarint(b, histogramReset, resetGauge)
	e.message = appendVarint(b, histogramMillis, uint64(unix*1000))
	return e.message
}
