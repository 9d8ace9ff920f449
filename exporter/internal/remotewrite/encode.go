// Package remotewrite is the format of Prometheus remote write 1.0.
package remotewrite

import (
	"math"
	"net/http"

	"github.com/klauspost/compress/snappy"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/windowstat/windowstat/exporter/internal/push"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// Format makes requests of remote write 1.0.
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
	requestSeries  = 1
	seriesLabels   = 1
	seriesSamples  = 2
	labelName      = 1
	labelValue     = 2
	sampleValue    = 1
	sampleMillis   = 2
	nameOfTheLabel = "__name__"
)

// encoder writes a WriteRequest: series by series, the length of each before it.
type encoder struct {
	out     []byte // series that are done
	series  []byte // the one that is being made, without its length
	empty   int    // how long it is without samples
	samples int
	packed  []byte
}

// Reset implements push.Encoder.
func (e *encoder) Reset() { e.out, e.series, e.empty, e.samples = e.out[:0], e.series[:0], 0, 0 }

// Samples implements push.Encoder.
func (e *encoder) Samples() int { return e.samples }

// Series implements seconds.Sink. Labels have to be sorted, and the name is one of them.
func (e *encoder) Series(f *table.Family, names, values []string) {
	e.flush()
	named := false
	for i, name := range names {
		if !named && name > nameOfTheLabel {
			e.label(nameOfTheLabel, f.Name)
			named = true
		}
		e.label(name, values[i])
	}
	if !named {
		e.label(nameOfTheLabel, f.Name)
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

// Histogram implements seconds.Sink. Nobody selects one.
func (e *encoder) Histogram(int64, *node.Histogram) {}

// flush ends the series; one without samples is none.
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
