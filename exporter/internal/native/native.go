// Package native converts histograms to Prometheus' native histograms, for scrapes in protobuf and for remote write.
//
// The cells of a [node.Histogram] are cut at every bound of the native schema. A native bucket is therefore a sum of
// whole cells, and no count is estimated.
package native

import (
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"

	"github.com/windowstat/windowstat/node"
)

// zeroThreshold is client_golang's default. The zero bucket holds only response times of 0.
const zeroThreshold = 0x1p-128

// Histogram returns h as a native histogram that shares no memory with h.
func Histogram(h *node.Histogram) *dto.Histogram {
	x := &struct {
		out            dto.Histogram
		count, zero    uint64
		sum, threshold float64
		schema         int32
	}{
		count: uint64(h.Count()), zero: uint64(h.Zero()), sum: h.Sum().Seconds(),
		threshold: zeroThreshold, schema: node.NativeSchema,
	}
	out := &x.out
	out.SampleCount, out.SampleSum, out.Schema = &x.count, &x.sum, &x.schema
	out.ZeroThreshold, out.ZeroCount = &x.threshold, &x.zero
	spans(out, h)
	return out
}

// spans sets the native buckets: spans of consecutive buckets with delta-encoded counts.
func spans(out *dto.Histogram, h *node.Histogram) {
	var next int
	var last int64
	out.PositiveDelta = make([]int64, 0, 24) // enough for one or two decades
	for i, n := range h.Native() {
		if gap := i - next; len(out.PositiveSpan) == 0 || gap > maxGap {
			out.PositiveSpan = append(
				out.PositiveSpan,
				&dto.BucketSpan{Offset: proto.Int32(int32(gap)), Length: proto.Uint32(0)},
			)
			next = i
		}
		span := out.PositiveSpan[len(out.PositiveSpan)-1]
		for ; next < i; next++ { // a small gap is cheaper as empty buckets
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
		// An empty span marks a histogram without observations as native.
		out.PositiveSpan = []*dto.BucketSpan{{Offset: proto.Int32(0), Length: proto.Uint32(0)}}
	}
}

// maxGap is the longest run of empty buckets within a span, as in client_golang.
const maxGap = 2
