package sampler

import (
	"iter"
	"math"
)

// ring has the values of a series of the last seconds: eight bytes for each second of the history, and of a series that is young for
// little more than its age. NaN is no value. The zero value is empty.
type ring struct {
	values []float64 // that of a second is as many places after the first one as there are seconds between them, modulo the history
	first  int64
	end    int64 // the second after the last one
}

// put stores the value of the last second, or of one after it, in a ring for a history of so many seconds.
func (r *ring) put(second int64, v float64, history int) {
	if r.values == nil || second-r.end >= int64(history) {
		*r = ring{first: second, end: second}
	}
	for i := min(r.end, second); i <= second; i++ {
		at := int((i - r.first) % int64(history))
		if at == len(r.values) {
			r.grow(history)
		}
		if r.values[at] = math.NaN(); i == second {
			r.values[at] = v
		}
	}
	r.end = second + 1
}

// grow adds a place. Once the ring is full its memory is no more than the history.
func (r *ring) grow(history int) {
	if n := len(r.values); n == cap(r.values) {
		r.values = append(make([]float64, 0, min(max(2*n, 16), history)), r.values...)
	}
	r.values = append(r.values, 0)
}

// seconds iterates over the values in [from, to).
func (r *ring) seconds(from, to int64) iter.Seq2[int64, float64] {
	return func(yield func(int64, float64) bool) {
		n := int64(len(r.values))
		for i := max(from, r.end-n); i < min(to, r.end); i++ {
			if v := r.values[(i-r.first)%n]; !math.IsNaN(v) && !yield(i, v) {
				return
			}
		}
	}
}
