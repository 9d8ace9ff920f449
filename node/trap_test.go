package node_test

import (
	"sync"
	"testing"
	"time"

	"github.com/windowstat/windowstat/node"
)

// Each test in this file checks for a fault that would be easy to make in this design.

// contend runs goroutines that contend for the statistic of r until the statistic has at least three stripes. The
// parameter at is the stamp of all calls. contend returns the number of calls.
func contend(t *testing.T, r *rig, at time.Duration) (passes int64) {
	t.Helper()
	const goroutines, each = 8, 20_000
	for r.Stripes() < 3 {
		// With one processor there is no contention, so contend itself adds stripes. It does so before it reaches the
		// limit of a stripe, 67 million entries in one bucket.
		if passes > 20_000_000 {
			r.Grow()
		}
		var wg sync.WaitGroup
		for range goroutines {
			wg.Go(func() {
				for range each {
					c := r.Enter(at, 1)
					c.Exit(at, false, 0)
				}
			})
		}
		wg.Wait()
		passes += goroutines * each
	}
	return passes
}

// The peak of a statistic is neither the sum nor the maximum of the peaks of its stripes. Passes in the same bucket
// must be added over the stripes. Passes in distant buckets must not be added.
func TestTrapPeaksOfStripesDoNotMerge(t *testing.T) {
	r := newRig(t, node.Options{SampleCount: 10})
	contend(t, r, 0)
	// At each of eight times, which are 300 ms apart, eight goroutines make 100 passes each. Each goroutine uses the
	// stripe that pick chooses.
	at := func(g int) time.Duration { return 5*time.Second + time.Duration(g)*300*ms }
	for g := range 8 {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { r.pass(at(g), 100) })
		}
		wg.Wait()
	}
	r.Seal(9 * time.Second)
	// The eight times are 5.0, 5.3, 5.6 and 5.9 s, and 6.2, 6.5, 6.8 and 7.1 s. A sliding second contains at most four
	// of these times. At each time there are 8 * 100 passes, so the peak is 4 * 800 = 3200.
	for i, want := range map[int64]int64{4: 0, 5: 3200, 6: 3200, 7: 3200} {
		if got := r.second(t, i).PassPeak; got != want {
			t.Errorf("peak of second %d is %d, want %d", i, got, want)
		}
	}
}

// A statistic that only one goroutine uses must not get more stripes.
func TestTrapNoGrowthWithoutContention(t *testing.T) {
	r := newRig(t, node.Options{})
	for i := range 100_000 {
		r.call(time.Duration(i)*ms, ms, false)
		if i%100 == 0 {
			r.Window(time.Duration(i) * ms)
		}
	}
	if n := r.Stripes(); n != 1 {
		t.Errorf("%d stripes", n)
	}
}

// A new stripe must not change a sealed second, even if the first event of the stripe has a stamp in that second.
func TestTrapANewStripeBeginsInTheOpenBucket(t *testing.T) {
	r := newRig(t, node.Options{})
	r.pass(100*ms, 1)
	r.Seal(10 * time.Second)
	before := r.second(t, 0)
	n := contend(t, r, 200*ms) // the stamps are in second 0, and the statistic gets more stripes
	r.Seal(11 * time.Second)
	if after := r.second(t, 0); after != before {
		t.Errorf("second 0 changed from %+v to %+v", before, after)
	}
	if got := r.second(t, 10).Pass; got != n {
		t.Errorf("second 10 holds %d, want %d", got, n)
	}
}

// A call must exit by the stripe by which it entered, even if another goroutine ends the call. Otherwise the number of
// calls in flight of one stripe would grow without limit, the number of another stripe would fall, and the maxima of
// both stripes would be meaningless.
func TestTrapACallLeavesByTheStripeItEnteredBy(t *testing.T) {
	r := newRig(t, node.Options{})
	contend(t, r, 0)
	const held = 50
	for i := range int64(100) {
		at := time.Duration(i+1) * time.Second
		var calls [held]*call
		for k := range calls {
			c := r.Enter(at, 1)
			calls[k] = &c
		}
		var wg sync.WaitGroup
		for k := range 5 {
			wg.Go(func() {
				for _, c := range calls[10*k : 10*k+10] {
					c.Exit(at, false, 0)
				}
			})
		}
		wg.Wait()
		r.Seal(at + time.Second)
		if m := r.second(t, i+1); m.InFlight != 0 || m.InFlightMax < held/int64(r.Stripes()) || m.InFlightMax > held {
			t.Fatalf("second %d: %+v", i+1, m)
		}
	}
}

// If a statistic skips several seconds, the counts of each bucket must still be in the second of this bucket.
func TestTrapJumpOverSeveralSeconds(t *testing.T) {
	r := newRig(t, node.Options{SampleCount: 10})
	r.pass(50*ms, 1)
	r.pass(950*ms, 2)
	r.pass(1950*ms, 4)
	r.pass(7350*ms, 8)
	r.Seal(20 * time.Second)
	for i, want := range []int64{3, 4, 0, 0, 0, 0, 0, 8, 0} {
		if got := r.second(t, int64(i)).Pass; got != want {
			t.Errorf("second %d holds %d, want %d", i, got, want)
		}
	}
}

// A reader that passes an older reading must neither turn the statistic back nor mix the counts of two buckets.
func TestTrapOlderReading(t *testing.T) {
	r := newRig(t, node.Options{})
	r.pass(500*ms, 3)
	r.pass(10*time.Second, 5)
	for _, now := range []time.Duration{0, 600 * ms, 9999 * ms} {
		if got := r.Window(now).Pass; got != 5 {
			t.Errorf("at %v: %d, want the open window's 5", now, got)
		}
		r.Seal(now)
	}
	if got := r.second(t, 0).Pass; got != 3 {
		t.Errorf("second 0 holds %d", got)
	}
}

// A second whose record was dropped cannot be read. Such a second must neither look idle nor return the record of
// another second.
func TestTrapReplacedSecondsAreNotIdle(t *testing.T) {
	const minute = int64(node.Minute / time.Second)
	r := newRig(t, node.Options{})
	open := r.Enter(0, 1) // this call is always in flight, so seconds without passes have a record, too
	for i := range 2 * minute {
		if i%3 == 0 {
			r.pass(time.Duration(i)*time.Second, int(i+1))
		}
		r.Seal(time.Duration(i+1) * time.Second)
		present := i + 1
		for s := range present {
			m, ok := r.Second(r.zero + s)
			if certain := s >= present-minute; certain && !ok {
				t.Fatalf("at %d s second %d cannot be read", present, s)
			}
			if want := (s + 1) * int64(b2i(s%3 == 0)); ok && (m.Pass != want+int64(b2i(s == 0)) || m.InFlight < 1) {
				t.Fatalf("at %d s second %d holds %+v, want %d passes", present, s, m, want)
			}
		}
		if _, whole := r.Sum(r.zero, r.zero+present); whole != (present <= minute) {
			t.Fatalf("at %d s the sum since the beginning is whole: %t", present, whole)
		}
	}
	open.Exit((2*node.Minute)+time.Second, false, 0)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Records move within the buffer of their store when the buffer is full. No record may overwrite another.
func TestTrapRecordsInTheStore(t *testing.T) {
	r := newRig(t, node.Options{History: node.Minute})
	var h node.Histogram
	for i := range int64(500) {
		at := time.Duration(i) * time.Second
		n := i*i%97 + 1
		if i%11 == 0 {
			continue // this second stays idle
		}
		for k := range n { // the records of these seconds have very different lengths
			r.call(at, time.Duration(k*k*k+i)*time.Microsecond, false)
		}
		r.Seal(time.Duration(i+1) * time.Second)
		for s := max(i-15, 0); s <= i; s++ {
			want := s*s%97 + 1
			if s%11 == 0 {
				want = 0
			}
			var pass int64
			if m, ok := r.Second(r.zero + s); ok {
				pass = m.Pass
			}
			if pass != want {
				t.Fatalf("at second %d, second %d holds %d passes, want %d", i, s, pass, want)
			}
		}
		from := r.zero + max(i-10, 0)
		sum, whole := r.Sum(from, r.zero+i+1)
		if !r.Histogram(from, r.zero+i+1, &h) || !whole || h.Count() != sum.Complete || h.Sum() != sum.RTSum {
			t.Fatalf("at second %d: histogram of %d with sum %v, counts %+v", i, h.Count(), h.Sum(), sum)
		}
	}
}
