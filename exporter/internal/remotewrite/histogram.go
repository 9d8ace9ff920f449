package remotewrite

import (
	"math"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/windowstat/windowstat/exporter/internal/native"
	"github.com/windowstat/windowstat/node"
)

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

	resetGauge = 3 // what came before does not matter
)

// Histogram implements seconds.Sink. The histogram is one of a gauge.
func (e *encoder) Histogram(unix int64, h *node.Histogram) {
	n, b := native.Histogram(h), e.message[:0]
	varint := func(field protowire.Number, v uint64) {
		b = protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), v)
	}
	float := func(field protowire.Number, v float64) {
		b = protowire.AppendFixed64(protowire.AppendTag(b, field, protowire.Fixed64Type), math.Float64bits(v))
	}
	varint(histogramCount, n.GetSampleCount())
	float(histogramSum, n.GetSampleSum())
	varint(histogramSchema, protowire.EncodeZigZag(int64(n.GetSchema())))
	float(histogramThreshold, n.GetZeroThreshold())
	varint(histogramZero, n.GetZeroCount())
	for _, s := range n.PositiveSpan {
		offset, length := protowire.EncodeZigZag(int64(s.GetOffset())), uint64(s.GetLength())
		size := protowire.SizeTag(spanOffset) + protowire.SizeVarint(offset) + protowire.SizeTag(spanLength) + protowire.SizeVarint(length)
		b = protowire.AppendVarint(protowire.AppendTag(b, histogramSpans, protowire.BytesType), uint64(size))
		varint(spanOffset, offset)
		varint(spanLength, length)
	}
	if len(n.PositiveDelta) > 0 {
		size := 0
		for _, d := range n.PositiveDelta {
			size += protowire.SizeVarint(protowire.EncodeZigZag(d))
		}
		b = protowire.AppendVarint(protowire.AppendTag(b, histogramDeltas, protowire.BytesType), uint64(size))
		for _, d := range n.PositiveDelta {
			b = protowire.AppendVarint(b, protowire.EncodeZigZag(d))
		}
	}
	varint(histogramReset, resetGauge)
	varint(histogramMillis, uint64(unix*1000))
	e.message = b
	e.series = protowire.AppendBytes(protowire.AppendTag(e.series, seriesHistograms, protowire.BytesType), b)
	e.samples++
}
