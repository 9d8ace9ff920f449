package node

import (
	"iter"
	"math/bits"
	"time"
)

// pageCells is how many cells a page has: one for each bit of its map.
const pageCells = 64

// maxPages is enough for every native boundary and every classic one.
const maxPages = (nativeMax - nativeMin + 2 + maxBounds + pageCells - 1) / pageCells

// page counts response times in a stretch of cells. Response times of one resource lie close together, so one or
// two pages are all that a statistic needs.
type page struct {
	used  uint64 // bit c is set where count[c] is not zero
	count [pageCells]int64
}

// pages is a histogram by cell. Pages appear when they are first counted into.
type pages [maxPages]*page

func (p *pages) count(cell int, n int64) {
	q := p[cell/pageCells]
	if q == nil {
		q = new(page)
		p[cell/pageCells] = q
	}
	c := cell % pageCells
	q.used |= 1 << c
	q.count[c] = saturate(q.count[c], n)
}

// Histogram is a distribution of response times, to be read as a Prometheus native histogram or as a classic one;
// both are exact. The zero value is empty. It is a copy: nothing changes it but its owner, and a Histogram that is
// used for reading again and again keeps its memory.
type Histogram struct {
	layout *Layout
	cells  []int64
	count  int64
	sum    time.Duration
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
		for c := 1; c < len(h.cells); {
			bucket, n := h.layout.native[c], int64(0)
			for ; c < len(h.cells) && h.layout.native[c] == bucket; c++ {
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
		c, n := 0, int64(0)
		for _, bound := range h.layout.bounds {
			for ; c < len(h.cells) && h.layout.upper[c] <= int64(bound); c++ {
				n = saturate(n, h.cells[c])
			}
			if !yield(bound, n) {
				return
			}
		}
	}
}

// reset empties the histogram for counts in the given layout.
func (h *Histogram) reset(l *Layout) {
	if cap(h.cells) < len(l.upper) {
		h.cells = make([]int64, len(l.upper))
	}
	h.cells = h.cells[:len(l.upper)]
	clear(h.cells)
	h.layout, h.count, h.sum = l, 0, 0
}

// add counts all that p has.
func (h *Histogram) add(p *pages) {
	for i, q := range p {
		if q == nil {
			continue
		}
		for used := q.used; used != 0; used &= used - 1 {
			c := bits.TrailingZeros64(used)
			h.cells[i*pageCells+c] = saturate(h.cells[i*pageCells+c], q.count[c])
		}
	}
}
