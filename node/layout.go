package node

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"sort"
	"time"
)

// Native buckets follow Prometheus's schema 3: bucket i holds the response times in (2^((i-1)/8), 2^(i/8)] seconds. A
// doubling of the response time spans eight buckets. The upper bound of a bucket is 9.05 % above the lower bound.
const (
	NativeSchema = 3
	perDoubling  = 1 << NativeSchema
	nativeMin    = -239 // the bucket of 1 ns
	nativeMax    = 265  // the bucket of the longest time.Duration
)

// maxBounds is the largest number of classic bounds. Each bound adds one series for each resource.
const maxBounds = 64

// DefaultBounds returns the default classic bounds: the default bounds of client_golang, and three shorter bounds.
func DefaultBounds() []time.Duration {
	return []time.Duration{
		500 * time.Microsecond, time.Millisecond, 2500 * time.Microsecond,
		5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
		100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond,
		time.Second, 2500 * time.Millisecond, 5 * time.Second, 10 * time.Second,
	}
}

// layout divides the range of response times into cells. Every bound of the native or the classic histogram is the end
// of a cell. A response time is counted once, in its cell. Each bucket of either histogram consists of whole cells, so
// its count is an exact sum:
//
//	native bucket   |-------- i -------|------ i+1 -------|------ i+2 -------|
//	classic bound                 |                                   |
//	cell            |     c       |c+1 |       c+2        |    c+3    | c+4  |
//
// Cell 0 holds only response times of 0, like Prometheus's zero bucket.
//
// A layout never changes and is safe for concurrent use. A process has one layout, of some 12 KiB.
type layout struct {
	bounds []time.Duration // upper bounds of the classic buckets; the last bucket has none
	upper  []int64         // upper[c] is the longest response time of cell c, in ns
	native []int16         // native[c] is the native bucket that contains cell c
	first  []uint16        // cell at which layout.cell starts its search, by octave and step
}

// layout.cell finds the cell of a response time by its octave and its step. Octave i contains the response times from
// 2^i nanoseconds to just below 2^(i+1) nanoseconds. An octave has 32 equal steps. A step is at most 3.1 % wide, and a
// native bucket is 9.05 % wide. At most one native bound therefore falls into a step.
const (
	steps    = 32
	stepBits = 5
)

// newLayout returns the layout for at most 64 classic bounds, which must be positive and ascending. The error names
// every invalid bound.
func newLayout(bounds []time.Duration) (*layout, error) {
	var errs []error
	if len(bounds) > maxBounds {
		errs = append(errs, fmt.Errorf("node: %d histogram bounds; at most %d are allowed", len(bounds), maxBounds))
	}
	for i, b := range bounds {
		if b <= 0 {
			errs = append(errs, fmt.Errorf("node: histogram bound %v is not positive", b))
		} else if i > 0 && b <= bounds[i-1] {
			errs = append(errs, fmt.Errorf("node: histogram bound %v does not ascend from %v", b, bounds[i-1]))
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

// add appends a cell to l. The cell ends at upper, in nanoseconds, and lies in the given native bucket.
func (l *layout) add(upper int64, native int) {
	l.upper = append(l.upper, upper)
	l.native = append(l.native, int16(native))
}

// nativeUpper returns the longest response time, in nanoseconds, that Prometheus counts in native bucket i. Prometheus
// converts a response time to float64 seconds, and compares this float64 with the bound. nativeUpper does the same.
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

// NativeBound returns the upper bound of native bucket i in seconds: 2^(i/8).
func NativeBound(i int) float64 {
	// These are the values 2^(k/8 - 1) for k from 0 to 7. They equal the constants of client_golang to the last bit.
	fractions := [perDoubling]float64{
		0.5, 0.5452538663326288, 0.5946035575013605, 0.6484197773255048,
		0.7071067811865475, 0.7711054127039704, 0.8408964152537144, 0.9170040432046711,
	}
	return math.Ldexp(fractions[i&(perDoubling-1)], i>>NativeSchema+1)
}

// cell returns the cell of a response time, which must not be negative.
func (l *layout) cell(rt time.Duration) int {
	ns := int64(rt)
	if ns == 0 {
		return 0
	}
	octave := bits.Len64(uint64(ns)) - 1
	step := uint64(ns) << (63 - octave) >> (63 - stepBits) & (steps - 1)
	c := int(l.first[octave*steps+int(step)])
	// c is the cell of the start of the step. The cell of ns is c plus the number of bounds that lie in the step and
	// below ns. The processor could not predict a branch for the first such bound. The next line therefore has no
	// branch: it adds the sign bit of upper[c]-ns, which is 1 if ns is above the bound. The loop counts further bounds.
	// It almost never runs, because few steps contain two bounds.
	c += int(uint64(l.upper[c]-ns) >> 63)
	for ns > l.upper[c] {
		c++
	}
	return c
}
