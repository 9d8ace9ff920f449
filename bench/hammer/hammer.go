// Package hammer counts the additions that a time-based counter loses or misplaces when its buckets turn under load.
//
// Goroutines add as fast as they can. Each records the number of its additions, and the bucket of the clock before and
// after each addition. Concurrently, every closed bucket is read once. Afterwards the sum of all buckets must equal the
// number of additions exactly. Each bucket must contain all additions that began and ended in it, and no more than the
// additions that may have fallen into it.
package hammer

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Target is a counter under the hammer.
type Target struct {
	// Name identifies the counter and its shape.
	Name string
	// Kinds names the values that one Add counts, each once.
	Kinds []string
	// Bucket is the length of a bucket that Closed returns.
	Bucket time.Duration
	// Lag is the number of buckets between the open bucket and the newest bucket that may be read. It is 0 for a
	// counter whose closed buckets are final.
	Lag int64
	// Open returns the number of the open bucket by the counter's own clock.
	Open func() int64
	// Add adds one to each kind.
	Add func()
	// Closed passes to take the counts by kind of each bucket in [from, to) that the counter has not dropped, in any
	// order.
	Closed func(from, to int64, take func(bucket int64, counts []int64))
}

// Result is the outcome of the hammer for one kind.
type Result struct {
	Target, Kind string
	// Added is the number of additions. Lost is the number of additions that are in no bucket; it is negative if the
	// buckets contain too many.
	Added, Lost int64
	// Turns is the number of compared buckets. Wrong is the number of buckets with an impossible count, and Worst the
	// maximum deficit of one of them.
	Turns, Wrong int
	Worst        int64
	// Took is the running time of the writers.
	Took time.Duration
}

// Run hammers the target with the given number of writers for the given time.
func Run(t Target, writers int, length time.Duration) []Result {
	tallies := make([]tally, writers)
	closed := map[int64][]int64{}
	first := t.Open()
	next := first
	collect := func() {
		to := t.Open() - t.Lag
		if to <= next {
			return
		}
		t.Closed(next, to, func(bucket int64, counts []int64) {
			if bucket >= next && bucket < to {
				closed[bucket] = slices.Clone(counts)
			}
		})
		next = to
	}

	var stop atomic.Bool
	var wg sync.WaitGroup
	began := time.Now()
	for w := range tallies {
		wg.Go(func() { tallies[w].write(t, &stop) })
	}
	every := max(t.Bucket/4, time.Millisecond)
	for time.Since(began) < length {
		time.Sleep(every)
		collect()
	}
	stop.Store(true)
	wg.Wait()
	took := time.Since(began)
	for last := t.Open(); next <= last; collect() {
		time.Sleep(every)
	}
	results := compare(t.Kinds, tallies, closed)
	for i := range results {
		results[i].Target, results[i].Took = t.Name, took
	}
	return results
}

// tally holds the additions that one writer recorded.
type tally struct {
	sure map[int64]int64 // additions that began and ended in a bucket
	open []span          // the others
}

// span is an addition that began in one bucket and ended in another.
type span struct{ from, to int64 }

func (t *tally) write(target Target, stop *atomic.Bool) {
	t.sure = map[int64]int64{}
	before, n := target.Open(), int64(0)
	for !stop.Load() {
		target.Add()
		after := target.Open()
		if after == before {
			n++
			continue
		}
		t.sure[before] += n
		t.open = append(t.open, span{before, after})
		before, n = after, 0
	}
	t.sure[before] += n
}

// compare compares the closed buckets with the additions.
func compare(kinds []string, tallies []tally, closed map[int64][]int64) []Result {
	var added int64
	low, high := map[int64]int64{}, map[int64]int64{}
	for _, t := range tallies {
		for bucket, n := range t.sure {
			added += n
			low[bucket] += n
			high[bucket] += n
		}
		for _, s := range t.open {
			added++
			for bucket := s.from; bucket <= s.to; bucket++ {
				high[bucket]++
			}
		}
	}
	for bucket, counts := range closed {
		if slices.Max(counts) > 0 {
			high[bucket] += 0 // compare buckets that have counts but no additions, too
		}
	}
	results := make([]Result, len(kinds))
	for k := range results {
		r := Result{Kind: kinds[k], Added: added, Lost: added, Turns: len(high)}
		for bucket := range high {
			var n int64
			if counts := closed[bucket]; counts != nil {
				n = counts[k]
			}
			r.Lost -= n
			if n < low[bucket] || n > high[bucket] {
				r.Wrong++
				r.Worst = max(r.Worst, low[bucket]-n)
			}
		}
		results[k] = r
	}
	return results
}
