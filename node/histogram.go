package node

import (
	"iter"
	"math"
	"slices"
	"time"
)

// Histogram is a distribution of response times, to be read as a Prometheus native histogram or as a classic one;
// both are exact. The zero value is empty. It is a copy: nothing changes it but its owner. One that is used for
// reading again and again keeps its memory, some 4 KiB. It is not safe for concurrent use.
type Histogram struct {
	layout   *layout
	cells    []int64
	count    int64
	sum      time.Duration
	min, max time.Duration
	from, to int // the cells that may not be empty
}

// Count is the number of response times.
func (h *Histogram) Count() int64 { return h.count }

// Sum is all response times together.
func (h *Histogram) Sum() time.Duration { return h.sum }

// Zero is the number of response times of exactly 0: the native histogram's zero bucket.
func (h *Histogram) Zero() int64 {
	if len(h.cells) == 0 {
		return 0
	}
	return h.cells[0]
}

// Native iterates over the buckets of the native histogram that are not empty, ascending: the index of schema 3 and
// the bucket's own count.
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

// Classic iterates over the buckets of the classic histogram, ascending: the upper bound and how many response
// times were at most that long. The bucket without a bound is [Histogram.Count].
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

// Quantile estimates the response time that a share q of all response times does not exceed: the smallest one with
// at least q*Count at or below it. The estimate lies in the same bucket as the true value, so it is off by less than
// the bucket's width, 9.05%; within the bucket response times are taken as spread evenly. A q at or below 0 gives the
// shortest response time and one at or above 1 the longest, exactly. An empty histogram gives 0, and so does a q that
// is not a number.
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

// Add counts all that o counts, too. Adding histograms with different classic bounds is a mistake, and panics.
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
	h.measure(&Counts{Complete: o.count, RTSum: o.sum, RTMin: o.min, RTMax: o.max})
	h.from, h.to = from, to // the shortest and the longest may not be known, see View.HistogramBefore
	for c := o.from; c < o.to; c++ {
		h.cells[c] = saturate(h.cells[c], o.cells[c])
	}
}

// reset empties the histogram for counts in the given layout, of any cells.
func (h *Histogram) reset(l *layout) {
	if cap(h.cells) < len(l.upper) {
		h.cells = make([]int64, len(l.upper))
	} else {
		clear(h.cells[h.from:h.to])
		h.cells = h.cells[:len(l.upper)]
	}
	*h = Histogram{layout: l, cells: h.cells, to: len(h.cells)}
}

// measure takes notice of the counts of calls whose cells were added: how many there are, and which cells are not empty.
func (h *Histogram) measure(c *Counts) {
	all := Counts{Complete: h.count, RTSum: h.sum, RTMin: h.min, RTMax: h.max}
	all.add(c)
	h.count, h.sum, h.min, h.max = all.Complete, all.RTSum, all.RTMin, all.RTMax
	h.from, h.to = 0, 0
	if h.count > 0 {
		h.from, h.to = h.layout.cell(h.min), h.layout.cell(h.max)+1
	}
}
