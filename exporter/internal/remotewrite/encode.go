// Package remotewrite encodes Prometheus remote write 1.0.
package remotewrite

import (
	"math"
	"net/http"

	"github.com/klauspost/compress/snappy"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/windowstat/windowstat/exporter/internal/push"
	"github.com/windowstat/windowstat/exporter/internal/table"
)

// Format is remote write 1.0.
var Format = push.Format{
	Name: "remote_write",
	Header: http.Header{
		"Content-Type":                      {"application/x-protobuf"},
		"Content-Encoding":                  {"snappy"},
		"X-Prometheus-Remote-Write-Version": {"0.1.0"},
	},
	New: func() push.Encoder { return new(encoder) },
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

// encoder encodes a WriteRequest: series by series, each with its length before it.
type encoder struct {
	out     []byte // complete series
	series  []byte // present series, without its length
	empty   int    // length of the present series without samples
	samples int
	message []byte // a histogram
	packed  []byte
}

// Reset implements push.Encoder.
func (e *encoder) Reset() { e.out, e.series, e.empty, e.samples = e.out[:0], e.series[:0], 0, 0 }

// Samples implements push.Encoder.
func (e *encoder) Samples() int { return e.samples }

// Series implements seconds.Sink. Labels must be sorted, the name among them.
func (e *encoder) Series(f *table.Family, names, values []string) {
	e.flush()
	named := false
	for i, name := range names {
		if !named && name > metricName {
			e.label(metricName, f.Name)
			named = true
		}
		e.label(name, values[i])
	}
	if !named {
		e.label(metricName, f.Name)
	}
	e.empty = len(e.series)
}

func (e *encoder) label(name, value string) {
	size := protowire.SizeTag(labelName) + protowire.SizeBytes(len(name)) + protowire.SizeTag(labelValue) + protowire.SizeBytes(len(value))
	b := protowire.AppendTag(e.series, seriesLabels, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(size))
	b = protowire.AppendTag(b, labelName, protowire.BytesType)
	b = protowire.AppendString(b, name)
	b = protowire.AppendTag(b, labelValue, protowire.BytesType)
	e.series = protowire.AppendString(b, value)
}

// Value implements seconds.Sink.
func (e *encoder) Value(unix int64, v float64) {
	ms := uint64(unix * 1000)
	size := protowire.SizeTag(sampleValue) + protowire.SizeFixed64() + protowire.SizeTag(sampleMillis) + protowire.SizeVarint(ms)
	b := protowire.AppendTag(e.series, seriesSamples, protowire.BytesType)
	b = protowire.AppendVarint(b, uint64(size))
	b = protowire.AppendTag(b, sampleValue, protowire.Fixed64Type)
	b = protowire.AppendFixed64(b, math.Float64bits(v))
	b = protowire.AppendTag(b, sampleMillis, protowire.VarintType)
	e.series = protowire.AppendVarint(b, ms)
	e.samples++
}

// flush ends the series; one without samples is dropped.
func (e *encoder) flush() {
	if len(e.series) > e.empty {
		e.out = protowire.AppendTag(e.out, requestSeries, protowire.BytesType)
		e.out = protowire.AppendBytes(e.out, e.series)
	}
	e.series, e.empty = e.series[:0], 0
}

// Body implements push.Encoder.
func (e *encoder) Body() ([]byte, error) {
	e.flush()
	e.packed = snappy.Encode(e.packed[:cap(e.packed)], e.out)
	return e.packed, nil
}
