package top

import (
	"math"

	dto "github.com/prometheus/client_model/go"
)

// times is a histogram of response times, in seconds.
type times struct {
	count, sum float64
	buckets    []bucket
}

// bucket is how many calls took no longer than a bound.
type bucket struct{ bound, count float64 }

// add adds a histogram, with the same bounds as those before.
func (t *times) add(h *dto.Histogram) {
	t.count += float64(h.GetSampleCount())
	t.sum += h.GetSampleSum()
	for i, b := range h.GetBucket() {
		if i == len(t.buckets) {
			t.buckets = append(t.buckets, bucket{bound: b.GetUpperBound()})
		}
		t.buckets[i].count += float64(b.GetCumulativeCount())
	}
}

// since returns what was added since an earlier state. Either may be nil, which is empty.
func (t *times) since(before *times) times {
	var diff times
	if t == nil {
		return diff
	}
	diff = times{t.count, t.sum, append([]bucket(nil), t.buckets...)}
	if before == nil {
		return diff
	}
	diff.count -= before.count
	diff.sum -= before.sum
	for i := range min(len(diff.buckets), len(before.buckets)) {
		diff.buckets[i].count -= before.buckets[i].count
	}
	return diff
}

// quantile interpolates between the bounds around it; beyond the last bound it returns that bound.
func (t *times) quantile(q float64) float64 {
	rank, low, below := q*t.count, 0.0, 0.0
	for _, b := range t.buckets {
		if b.count >= rank && !math.IsInf(b.bound, 1) {
			return low + (b.bound-low)*(rank-below)/max(b.count-below, 1)
		}
		if !math.IsInf(b.bound, 1) {
			low, below = b.bound, b.count
		}
	}
	return low
}

// respond sets the response times of a second.
func (s *second) respond(t times) {
	if t.count > 0 {
		s.values[rtSum] = t.sum / t.count * s.values[complete]
		s.values[rtP99] = t.quantile(0.99)
	}
}
