package node

import (
	"iter"
	"math"
	"slices"
	"time"
)

// Histogram is a distribution of response times. It can be read as a Prometheus native histogram and as a classic one.
// Both are exact. The zero value is empty. A Histogram is a copy, so calls that end later do not change it. A method
// that fills a Histogram reuses the memory of its cells, some 4 KiB. A Histogram is not safe for concurrent use.
//
// Response times are counted by cell. Every bound of the native or the classic histogram is the end of a cell (see
// layout). The count of a native or a classic bucket is therefore the sum of the counts of whole cells, and no count is
// estimated:
//
//	cells     | 3 | 1 | 0 | 4 | 2 | 0 | …
//	native    |   4   | 0 |   6   | …       the bounds are 2^(i/8) seconds
//	classic   |     4     | 10            the counts are cumulative, the bounds are Options.Bounds
type Histogram struct {
	layout   *layout
	cells    []int64
	count    int64
	sum      time.Duration
	min, max time.Duration
	from, to int // only cells in [from, to) may have counts
}

// Count returns the number of response times.
func (h *Histogram) Count() int64 { return h.count }

// Sum returns the sum of all response times.
func (h *Histogram) Sum() time.Duration { return h.sum }

// Zero returns the count of the native histogram's zero bucket: the number of response times of exactly 0.
func (h *Histogram) Zero() int64 {
	if len(h.cells) == 0 {
		return 0
	}
	return h.cells[0]
}

// Native iterates over the non-empty buckets of the native histogram in ascending order, except for the zero bucket;
// see [Histogram.Zero]. It yields the index of each bucket in schema 3, and the count of the bucket alone, without the
// buckets before it.
func (h *Histogram) Native() iter.Seq2[int, int64] {
	return func(yield func(int, int64) bool) {
		for c := max(h.from, 1); c < h.to; {
			bucket, n := h.layout.native[c], int64(0)
			for ; c < h.to && h.layout.native[c] == bucket; c++ {
				n = saturate(n, h.cells[c])
			}
			if n > 0 && !yield(int(bucket), n) {
				return
			}
		}
	}
}

// Classic iterates over the buckets of the classic histogram in ascending order. It yields the upper bound of each
// bucket, and the number of all response times up to this bound. Classic leaves out the last bucket, which has no upper
// bound. The count of this last bucket is [Histogram.Count], because it includes all response times.
func (h *Histogram) Classic() iter.Seq2[time.Duration, int64] {
	return func(yield func(time.Duration, int64) bool) {
		if h.layout == nil {
			return
		}
		c, n := h.from, int64(0)
		for _, bound := range h.layout.bounds {
			for ; c < h.to && h.layout.upper[c] <= int64(bound); c++ {
				n = saturate(n, h.cells[c])
			}
			if !yield(bound, n) {
				return
			}
		}
	}
}

// Quantile estimates the q-quantile: the smallest response time t for which at least q*Count response times are at most
// t. For example, the 0.9-quantile of ten response times is the ninth shortest. The estimate lies in the same cell as
// the true value. A cell is at most as wide as a native bucket, so the error is less than 9.05 %. Within a cell,
// Quantile assumes evenly spread response times.
//
// For q <= 0, Quantile returns the shortest response time, and for q >= 1 the longest one. Both are exact. For an empty
// histogram, or if q is NaN, Quantile returns 0.
func (h *Histogram) Quantile(q float64) time.Duration {
	switch {
	case h.count == 0 || math.IsNaN(q):
		return 0
	case q <= 0:
		return h.min
	case q >= 1:
		return h.max
	}
	rank := max(int64(math.Ceil(q*float64(h.count))), 1)
	for c := h.from; c < h.to; c++ {
		n := h.cells[c]
		if rank > n {
			rank -= n
			continue
		}
		low, high := int64(0), h.layout.upper[c]
		if c > 0 {
			low = h.layout.upper[c-1] + 1
		}
		low, high = max(low, int64(h.min)), min(high, int64(h.max))
		return time.Duration(low + min(int64(float64(high-low)*(float64(rank)/float64(n))), high-low))
	}
	return h.max
}

// Add adds all counts of o to h. It panics if the histograms have different classic bounds.
func (h *Histogram) Add(o *Histogram) {
	if o.layout == nil {
		return
	}
	if h.layout == nil {
		h.reset(o.layout)
	}
	if h.layout != o.layout && !slices.Equal(h.layout.bounds, o.layout.bounds) {
		panic("node: adding histograms with different bounds")
	}
	from, to := min(h.from, o.from), max(h.to, o.to)
	h.addTotals(&Counts{Complete: o.count, RTSum: o.sum, RTMin: o.min, RTMax: o.max})
	// addTotals computes the range of cells from the shortest and the longest response time. A histogram from
	// View.HistogramBefore lacks these two times, so set the range here.
	h.from, h.to = from, to
	for c := o.from; c < o.to; c++ {
		h.cells[c] = saturate(h.cells[c], o.cells[c])
	}
}

// reset empties h, and prepares it for counts by the cells of l. After reset, the range from h.from to h.to is empty,
// until [Histogram.addTotals] or the caller sets it.
func (h *Histogram) reset(l *layout) {
	if cap(h.cells) < len(l.upper) {
		h.cells = make([]int64, len(l.upper))
	} else {
		clear(h.cells[h.from:h.to])
		h.cells = h.cells[:len(l.upper)]
	}
	*h = Histogram{layout: l, cells: h.cells}
}

// addTotals adds the completions and response times of c to the count, the sum, the minimum and the maximum of h. From
// the minimum and the maximum, it also computes the range of the cells that may have counts, from h.from to h.to. The
// caller must add the counts of the cells.
func (h *Histogram) addTotals(c *Counts) {
	all := Counts{Complete: h.count, RTSum: h.sum, RTMin: h.min, RTMax: h.max}
	all.add(c)
	h.count, h.sum, h.min, h.max = all.Complete, all.RTSum, all.RTMin, all.RTMax
	h.from, h.to = 0, 0
	if h.count > 0 {
		h.from, h.to = h.layout.cell(h.min), h.layout.cell(h.max)+1
	}
}
