package sampler

import (
	"iter"
	"math"
)

// ring has the values of a series of the last seconds, by the minute, so that it takes little more than eight bytes for each second
// of the history, and of a series that is young no more than for its age. NaN is no value. The zero value is empty.
type ring struct {
	minutes []*minute // nil where there are no values
	end     int64     // the second after the last one
}

type minute [60]float64

// put stores the value of the last second, or of one after it, in a ring for a history of so many seconds.
func (r *ring) put(second int64, v float64, history int) {
	if r.minutes == nil {
		r.minutes = make([]*minute, (history+len(minute{})-1)/len(minute{}))
		r.end = second
	}
	for i := max(r.end, second-r.size()); i < second; i++ {
		r.set(i, math.NaN())
	}
	r.set(second, v)
	r.end = second + 1
}

func (r *ring) set(second int64, v float64) {
	m, i := r.at(second)
	if *m == nil && !math.IsNaN(v) {
		*m = new(minute)
		for i := range *m {
			(*m)[i] = math.NaN()
		}
	}
	if *m != nil {
		(*m)[i] = v
	}
}

// at returns in which minute the value of a second is, and where.
func (r *ring) at(second int64) (m **minute, i int) {
	i = int(second % r.size())
	if i < 0 {
		i += int(r.size())
	}
	return &r.minutes[i/len(minute{})], i % len(minute{})
}

func (r *ring) size() int64 { return int64(len(r.minutes) * len(minute{})) }

// seconds iterates over the values in [from, to).
func (r *ring) seconds(from, to int64) iter.Seq2[int64, float64] {
	return func(yield func(int64, float64) bool) {
		for i := max(from, r.end-r.size()); i < min(to, r.end); i++ {
			m, at := r.at(i)
			if *m == nil {
				continue
			}
			if v := (*m)[at]; !math.IsNaN(v) && !yield(i, v) {
				return
			}
		}
	}
}
