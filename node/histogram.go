package node

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"math/bits"
	"slices"
	"sort"
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
	h.addTotals(&Counts{Complete: o.count, RTSum: o.sum, RTMin: o.min, RTMax: o.max})
	h.from, h.to = from, to // the shortest and the longest may not be known, see View.HistogramBefore
	for c := o.from; c < o.to; c++ {
		h.cells[c] = saturate(h.cells[c], o.cells[c])
	}
}

// reset empties the histogram for counts in the given layout. [Histogram.measure] tells it which of its cells are used.
func (h *Histogram) reset(l *layout) {
	if cap(h.cells) < len(l.upper) {
		h.cells = make([]int64, len(l.upper))
	} else {
		clear(h.cells[h.from:h.to])
		h.cells = h.cells[:len(l.upper)]
	}
	*h = Histogram{layout: l, cells: h.cells}
}

// measure takes notice of the counts of calls whose cells were added: how many there are, and which cells are not empty.
func (h *Histogram) addTotals(c *Counts) {
	all := Counts{Complete: h.count, RTSum: h.sum, RTMin: h.min, RTMax: h.max}
	all.add(c)
	h.count, h.sum, h.min, h.max = all.Complete, all.RTSum, all.RTMin, all.RTMax
	h.from, h.to = 0, 0
	if h.count > 0 {
		h.from, h.to = h.layout.cell(h.min), h.layout.cell(h.max)+1
	}
}

// Native histogram buckets are those of Prometheus with schema 3: bucket i holds the response times in
// (2^((i-1)/8), 2^(i/8)] seconds, eight buckets for each doubling, each 9.05% wide.
const (
	NativeSchema = 3
	perDoubling  = 1 << NativeSchema
	nativeMin    = -239 // holds 1 ns
	nativeMax    = 265  // holds the longest time.Duration
)

// maxBounds bounds the classic buckets: every one is a series for each resource.
const maxBounds = 64

// DefaultBounds are the classic bounds used when none are configured: client_golang's, and three below them.
func DefaultBounds() []time.Duration {
	return []time.Duration{
		500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond,
		5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
		100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
		time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second,
	}
}

// layout divides response times into cells at every boundary that anybody wants to see: those of the native
// histogram and those of the classic one. A response time is counted once, in its cell; both histograms are sums of
// cells, and exact. Cell 0 is for a response time of 0 alone, Prometheus's zero bucket.
//
// A layout never changes and is safe for concurrent use. It takes some 14 KiB, once for a process.
type layout struct {
	bounds []time.Duration
	upper  []int64 // upper[c] is the longest response time of cell c, in ns
	native []int16 // native[c] is the native bucket that cell c is a part of
	first  []uint16
}

// A response time's guess is read from first by its position: the octave, and within it one of 32 steps. A step is
// at most 3.1% wide, so at most one native boundary falls into it.
const (
	steps    = 32
	stepBits = 5
)

// newLayout makes the layout for these classic bounds: positive, ascending, at most 64.
func newLayout(bounds []time.Duration) (*layout, error) {
	var errs []error
	if len(bounds) > maxBounds {
		errs = append(errs, fmt.Errorf("node: %d histogram bounds; at most %d are allowed", len(bounds), maxBounds))
	}
	for i, b := range bounds {
		if b <= 0 {
			errs = append(errs, fmt.Errorf("node: histogram bound %v is not positive", b))
		} else if i > 0 && b <= bounds[i-1] {
			errs = append(errs, fmt.Errorf("node: histogram bound %v does not follow %v in ascending order", b, bounds[i-1]))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	l := &layout{bounds: bounds, upper: []int64{0}, native: []int16{0}}
	rest := bounds
	for i := nativeMin; i <= nativeMax; i++ {
		top := nativeUpper(i)
		for len(rest) > 0 && int64(rest[0]) <= top {
			if int64(rest[0]) < top {
				l.add(int64(rest[0]), i)
			}
			rest = rest[1:]
		}
		l.add(top, i)
	}
	l.first = make([]uint16, 64*steps)
	for octave := range 63 {
		for s := range steps {
			low := int64(steps | s)
			if octave >= stepBits {
				low <<= octave - stepBits
			} else {
				low >>= stepBits - octave
			}
			l.first[octave*steps+s] = uint16(sort.Search(len(l.upper), func(c int) bool { return l.upper[c] >= low }))
		}
	}
	return l, nil
}

func (l *layout) add(upper int64, native int) {
	l.upper = append(l.upper, upper)
	l.native = append(l.native, int16(native))
}

// nativeUpper is the longest response time, in ns, that Prometheus puts into native bucket i: the comparison is done
// in float64 seconds, as an observation is.
func nativeUpper(i int) int64 {
	bound := NativeBound(i)
	ns := bound * 1e9
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	d := time.Duration(ns)
	for d.Seconds() > bound {
		d--
	}
	for (d + 1).Seconds() <= bound {
		d++
	}
	return int64(d)
}

// NativeBound is the upper bound of native bucket i in seconds: 2^(i/8).
func NativeBound(i int) float64 {
	// 2^(k/8 - 1), to the last bit as client_golang has them.
	fractions := [perDoubling]float64{
		0.5, 0.5452538663326288, 0.5946035575013605, 0.6484197773255048,
		0.7071067811865475, 0.7711054127039704, 0.8408964152537144, 0.9170040432046711,
	}
	return math.Ldexp(fractions[i&(perDoubling-1)], i>>NativeSchema+1)
}

// cell finds the cell of a response time that is not negative.
func (l *layout) cell(rt time.Duration) int {
	ns := int64(rt)
	if ns == 0 {
		return 0
	}
	octave := bits.Len64(uint64(ns)) - 1
	step := uint64(ns) << (63 - octave) >> (63 - stepBits) & (steps - 1)
	c := int(l.first[octave*steps+int(step)])
	// The comparison is made without a branch, because nothing predicts it; the loop is for classic bounds that lie
	// close to a native one, and almost never runs.
	c += int(uint64(l.upper[c]-ns) >> 63)
	for ns > l.upper[c] {
		c++
	}
	return c
}
