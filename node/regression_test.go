package node_test

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// The rings of Sentinel, in Java and in Go, have defects that lose or blur counts. This file has a test for each of
// these defects. The comment of each test describes the defect in Sentinel. The file also has tests for defects of
// earlier versions of this package. The comments of these tests say so.

// Sentinel publishes the new start of a bucket before it clears the counters of the bucket. Readers then take old
// counts for current ones, and counts of concurrent writers are lost. In this package, a slot that is used again is
// empty.
func TestRegressionSlotUsedAgainIsEmpty(t *testing.T) {
	r := newRig(t, node.Options{})
	for i := range int64(200) {
		at := time.Duration(i) * 500 * ms
		r.pass(at, 7)
		if got := r.Bucket(at, 0).Pass; got != 7 {
			t.Fatalf("bucket %d holds %d, want its own 7", i, got)
		}
		if got, want := r.Window(at).Pass, min(7*(i+1), 14); got != want {
			t.Fatalf("window at bucket %d holds %d, want %d", i, got, want)
		}
		if got, want := r.Minute(at).Pass, min(7*(i+1), 7*(119+i%2)); got != want {
			t.Fatalf("minute at bucket %d holds %d, want %d", i, got, want)
		}
	}
}

// In Sentinel, two writers may find that a bucket has ended, and reset the bucket one after the other. The second
// writer does not check again under the lock, so the counts that were added after the first reset are lost.
func TestRegressionConcurrentWritersAtABoundary(t *testing.T) {
	const writers, turns = 8, 2000
	r := newRig(t, node.Options{})
	for turn := range turns {
		at := time.Duration(turn) * 500 * ms
		var wg sync.WaitGroup
		start := make(chan struct{})
		for range writers {
			wg.Go(func() {
				<-start
				r.Block(at, 1)
			})
		}
		close(start)
		wg.Wait()
		if got := r.Bucket(at, 0).Block; got != writers {
			t.Fatalf("turn %d: %d of %d were counted", turn, got, writers)
		}
	}
	if got := r.Snapshot(0, nil).Total.Block; got != writers*turns {
		t.Errorf("%d of %d were counted", got, writers*turns)
	}
}

// In Sentinel, a writer keeps a pointer to its bucket while the ring turns, and may add to a newer bucket in the same
// slot. A writer with an older time adds to a bucket that is thrown away. In this package, the events of both writers
// count in the open second.
func TestRegressionLateWriterCountsInTheOpenSecond(t *testing.T) {
	r := newRig(t, node.Options{})
	late := r.Enter(100*ms, 1)
	r.pass(90*time.Second, 1)
	r.Seal(95 * time.Second)
	before := r.second(t, 90)
	late.Exit(900*ms, true, 0) // the stamp of the exit is in second 0, which is sealed
	r.Block(50*ms, 1)
	if got := r.second(t, 90); got != before {
		t.Errorf("second 90 changed from %+v to %+v", before, got)
	}
	r.Seal(96 * time.Second)
	m := r.second(t, 95)
	if m.Complete != 1 || m.Exception != 1 || m.Block != 1 || m.RTSum != 800*ms {
		t.Errorf("second 95 holds %+v", m)
	}
}

// In Sentinel, a completion reads the clock up to four times, so its rt, its success and its exception may count in
// different seconds. A reader of Sentinel reads the sums of rt, successes and exceptions one after the other, so the
// sums may belong to different times.
func TestRegressionACompletionIsInOneSecond(t *testing.T) {
	r := newRig(t, node.Options{})
	for i := range 400 {
		at := time.Duration(i) * 333 * ms
		c := r.Enter(at, 3)
		c.Exit(at+5*time.Second-1, true, 0)
		r.Seal(at + 5*time.Second)
		var h node.Histogram
		for s := r.view.Since(); s < r.zero+int64((at+5*time.Second)/time.Second); s++ {
			m, ok := r.Second(s)
			if !ok {
				continue
			}
			whole := r.Histogram(s, s+1, &h) // whole is false if the second is older than a minute
			if m.Complete != m.Exception || m.RTSum != time.Duration(m.Complete)*(5*time.Second-1) ||
				whole && h.Count() != m.Complete {
				t.Fatalf("second %d holds %+v and a histogram of %d", s, m, h.Count())
			}
		}
	}
}

// In Sentinel, a window of two half seconds covers between 0.5 and 1 s of real time. Just after a boundary, the rate of
// this window may be half of the true rate. This package also has the last complete second, whose rate is steady.
func TestRegressionThePartialBucketDoesNotBlurTheLastSecond(t *testing.T) {
	r := newRig(t, node.Options{})
	for at := time.Duration(0); at < 10*time.Second; at += 10 * ms { // a steady rate of 100 calls a second
		r.pass(at, 1)
		if at < time.Second {
			continue
		}
		if got := r.Snapshot(at, nil).Last.Pass; got != 100 {
			t.Fatalf("at %v the last complete second holds %d, want 100", at, got)
		}
	}
}

// If the clock is set back, Sentinel loses all events until the clock has caught up. Sentinel for Java writes these
// events into buckets that nobody reads, and counts future buckets as current ones. Sentinel for Go logs an error for
// each event.
func TestRegressionClockSetBack(t *testing.T) {
	for _, back := range []time.Duration{
		10 * ms, 900 * ms, 2 * time.Second, 4 * time.Minute, time.Hour, 20000 * time.Hour,
	} {
		r := newRig(t, node.Options{})
		for i := range 100 {
			if i == 50 {
				r.wall -= back
			}
			r.now = time.Duration(i) * 250 * ms
			r.call(r.now, ms, i%2 == 0)
			// The window usually holds 3 or 4 events. While the timeline slews, the events are not aligned with the
			// buckets, and the window may hold 5.
			if got := r.Window(r.now).Pass; got < min(int64(i), 3) || got > 5 {
				t.Fatalf("back %v, event %d: the window holds %d", back, i, got)
			}
		}
		s := r.Snapshot(r.now, nil)
		if s.Total.Pass != 100 || s.Total.Complete != 100 || s.Total.RTSum != 100*ms || s.InFlight != 0 {
			t.Errorf("back %v: %+v", back, s)
		}
		r.now += 2 * time.Second
		r.Seal(r.now)
		sum, whole := r.Sum(r.zero, r.open(r.now).Index)
		if sum != s.Total || !whole {
			t.Errorf("back %v: the sealed seconds hold %+v (%t)", back, sum, whole)
		}
		if steps := r.line.Health().Steps; (steps == 1) != (back >= time.Second) {
			t.Errorf("back %v: %d steps", back, steps)
		}
	}
}

// After a jump of the clock, or a suspension of the machine, all of Sentinel's buckets are too old for its window. In
// this package, a jump and a suspension skip names of seconds, but no time: earlier seconds stay readable, and the
// window is unchanged.
func TestRegressionClockSetForward(t *testing.T) {
	for _, forward := range []time.Duration{900 * ms, 2 * time.Second, time.Hour, 100000 * time.Hour} {
		r := newRig(t, node.Options{})
		for i := range 40 {
			if i == 20 {
				r.wall += forward
			}
			r.now = time.Duration(i) * 250 * ms
			r.pass(r.now, 1)
			if got := r.Window(r.now).Pass; got < min(int64(i), 3) || got > 5 {
				t.Fatalf("forward %v, event %d: the window holds %d", forward, i, got)
			}
		}
		r.now = 12 * time.Second
		r.Seal(r.now)
		var pass int64
		last := time.Time{}
		for i := range int64(12) {
			m, ok := r.Second(r.zero + i)
			if !ok || !m.Start.After(last) {
				t.Fatalf("forward %v: second %d is %+v (%t) after %v", forward, i, m, ok, last)
			}
			pass += m.Pass
			last = m.Start
		}
		if pass != 40 {
			t.Errorf("forward %v: the sealed seconds hold %d", forward, pass)
		}
	}
}

// Sentinel updates the shortest response time and the maximum in flight in two steps: it compares, and then stores.
// Between the two steps, another goroutine may store a better value. The second step then overwrites this value.
func TestRegressionExtremesAreExact(t *testing.T) {
	r := newRig(t, node.Options{})
	const goroutines, each = 8, 5000
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range each {
				c := r.Enter(0, 1)
				c.Exit(time.Duration(1000+g+goroutines*((i*7919)%each)), false, 0)
			}
		})
	}
	wg.Wait()
	total := r.Snapshot(0, nil).Total
	if total.RTMin != 1000 || total.RTMax != 1000+goroutines*each-1 {
		t.Errorf("from %d to %d, want from 1000 to %d", total.RTMin, total.RTMax, 1000+goroutines*each-1)
	}
	if low, ok := total.MinRT(); low != 1000 || !ok {
		t.Errorf("MinRT is %d, %t", low, ok)
	}
}

// In Sentinel, idle windows have invented values: a maximum of 2 completions a second, a minimum of 5 s or 60 s, and an
// average of NaN. In this package, all of these values are 0.
func TestRegressionIdleReadingsAreZero(t *testing.T) {
	r := newRig(t, node.Options{})
	for _, w := range []node.Window{{}, r.Window(0), r.Minute(0), r.Window(time.Hour), r.Minute(time.Hour)} {
		for name, got := range map[string]float64{
			"PassQPS": w.PassQPS(), "MaxComplete": float64(w.MaxComplete),
			"AvgRT": float64(w.AvgRT()), "ExceptionRatio": w.ExceptionRatio(), "BlockRatio": w.BlockRatio(),
			"View.PassQPS": r.PassQPS(time.Hour),
		} {
			if got != 0 {
				t.Errorf("%s is %v", name, got)
			}
		}
		if low, ok := w.MinRT(); ok || low != 0 {
			t.Errorf("MinRT is %v, %t", low, ok)
		}
	}
	var h node.Histogram
	for _, q := range []float64{-1, 0, 0.5, 1, 2, math.NaN()} {
		if got := h.Quantile(q); got != 0 {
			t.Errorf("Quantile(%v) is %v", q, got)
		}
	}
}

// For a batch of n calls, Sentinel adds the rt once, but counts n successes. The average rt is then too low.
func TestRegressionBatchCountsNTimes(t *testing.T) {
	r := newRig(t, node.Options{})
	batch := r.Enter(0, 2)
	batch.Exit(7*ms, false, 0)
	r.call(10*ms, 4*ms, false)
	if got := r.Window(20 * ms).AvgRT(); got != 6*ms {
		t.Errorf("average of 7, 7 and 4 ms is %v", got)
	}
}

// Sentinel computes the maximum rate as the maximum of a bucket times the number of buckets. This product is correct
// only if the buckets together are one second long. Otherwise the rate may be, for example, half of the true value.
func TestRegressionMaxComplete(t *testing.T) {
	for buckets, want := range map[int]int64{1: 14, 2: 10, 10: 10} {
		r := newRig(t, node.Options{SampleCount: buckets})
		for range 10 {
			r.call(0, 0, false)
		}
		for range 4 {
			r.call(600*ms, 0, false)
		}
		if got := r.Window(700 * ms).MaxComplete; got != want {
			t.Errorf("%d buckets: %v, want %v", buckets, got, want)
		}
	}
}

// A borrowed pass before 1970 must count in the second of its bucket. In an earlier version of this package, such a
// pass did not count there.
func TestRegressionALoanBefore1970(t *testing.T) {
	past := time.Date(1960, 1, 1, 0, 0, 0, 0, time.UTC)
	now := time.Duration(0)
	line := leap.NewTimeline(leap.Clock{
		Mono: func() time.Duration { return now },
		Wall: func() time.Time { return past.Add(now) },
	})
	config, err := node.NewConfig(line, node.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, v := node.New(config, 0), node.NewView(config, 0)
	v.Add(s)
	zero := v.Since()
	if _, ok := s.Occupy(0, time.Duration(zero)*time.Second+1500*ms, 1); !ok {
		t.Fatal("nothing was borrowed")
	}
	now = 5 * time.Second
	s.Seal(leap.Reading(now))
	for i := range int64(4) {
		if m, ok := v.Second(zero + i); !ok || m.Pass != map[int64]int64{1: 1}[i] {
			t.Errorf("second %d: %+v, %t", i, m, ok)
		}
	}
}

// A reading ahead of the clock must not open a bucket. In an earlier version of this package, such a reading opened its
// bucket. Until the clock reached this bucket, no second was sealed, and all calls counted in this bucket.
func TestRegressionAReadingAheadMovesNothing(t *testing.T) {
	for name, read := range map[string]func(r *rig, ahead leap.Reading){
		"Seal":     func(r *rig, ahead leap.Reading) { r.Statistic.Seal(ahead) },
		"Block":    func(r *rig, ahead leap.Reading) { r.Statistic.Block(ahead, 1) },
		"Enter":    func(r *rig, ahead leap.Reading) { r.Statistic.Enter(ahead, 1) },
		"Occupy":   func(r *rig, ahead leap.Reading) { r.Statistic.Occupy(ahead, 0, 1) },
		"Retire":   func(r *rig, ahead leap.Reading) { r.Statistic.Retire(ahead, r.zero+10) },
		"New":      func(r *rig, ahead leap.Reading) { r.view.Add(node.New(r.config, ahead)) },
		"PassQPS":  func(r *rig, ahead leap.Reading) { r.view.PassQPS(ahead) },
		"Window":   func(r *rig, ahead leap.Reading) { r.view.Window(ahead) },
		"Minute":   func(r *rig, ahead leap.Reading) { r.view.Minute(ahead) },
		"Snapshot": func(r *rig, ahead leap.Reading) { r.view.Snapshot(ahead, nil) },
		"Waiting":  func(r *rig, ahead leap.Reading) { r.view.Waiting(ahead) },
	} {
		for _, ahead := range []time.Duration{
			600 * ms, 5 * time.Minute, time.Hour, 1 << 62, math.MaxInt64 - 10*time.Second,
		} {
			r := newRig(t, node.Options{})
			other := node.New(r.config, 0) // no call of the leaf other has a stamp ahead of the clock
			r.view.Add(other)
			passes := int64(2)
			if name == "Enter" {
				passes = 3
			}
			for i := range int64(4) {
				now := time.Duration(i)*time.Second + 100*ms
				read(r, r.at(now).Add(ahead))
				r.call(now, 10*ms, false)
				other.Enter(leap.Reading(now), 1)
				if got := r.Window(now).Pass; got != passes {
					t.Fatalf("%s %v ahead: the window at %v holds %d passes, want %d", name, ahead, now, got, passes)
				}
				if got := r.Window(now + 900*ms).Pass; got != 0 { // all passes were in the first half of the second
					t.Fatalf("%s %v ahead: the window at %v holds %d passes", name, ahead, now+900*ms, got)
				}
				if m := r.second(t, i); m.Pass != passes || m.Complete != 1 {
					t.Fatalf("%s %v ahead: second %d holds %+v, want %d passes", name, ahead, i, m, passes)
				}
			}
		}
	}
}

// The minute window must be read under mu. An earlier version of this package read it under the stripe locks alone,
// while readers of seconds changed the position of the previous lookup under mu alone. The two kinds of readers raced,
// and some windows lacked some of their seconds. The race detector finds this race immediately. Without the race
// detector, few windows are wrong.
func TestRegressionMinuteDuringReadsOfSeconds(t *testing.T) {
	r := newRig(t, node.Options{})
	const seconds, minute = 200, 59 // the minute window covers 59 sealed seconds and the open one, which is idle
	for i := range time.Duration(seconds) {
		r.call(i*time.Second, ms, false)
	}
	if !r.view.ReadsUnderMu(r.at(seconds * time.Second)) {
		t.Error("windows are read without mu")
	}
	var wg sync.WaitGroup
	var stop atomic.Bool
	wg.Go(func() {
		for i := int64(0); !stop.Load(); i++ {
			r.Second(r.zero + seconds - 1 - i*7%80)
		}
	})
	for range 20_000 {
		if w := r.Minute(seconds * time.Second); w.Pass != minute || w.Complete != minute {
			t.Errorf("%+v", w)
			break
		}
	}
	stop.Store(true)
	wg.Wait()
}
