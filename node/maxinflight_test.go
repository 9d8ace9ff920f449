package node_test

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// several returns a view of n new leaves. It also returns these leaves.
func several(r *rig, n int) (v *node.View, leaves []*node.Statistic) {
	v = node.NewView(r.config, 0)
	for range n {
		s := node.New(r.config, 0)
		v.Add(s)
		leaves = append(leaves, s)
	}
	return v, leaves
}

func maxInFlight(t *testing.T, v *node.View, index int64) int64 {
	t.Helper()
	m, ok := v.Second(index)
	if !ok {
		t.Fatalf("second %d cannot be read", index)
	}
	if all := v.AppendSeconds(nil, index-2, index+1); all[len(all)-1] != m {
		t.Errorf("single record %+v, in a list %+v", m, all[len(all)-1])
	}
	return m.InFlightMax
}

// InFlightMax of a view of several leaves is the highest lower bound that can be computed from the records of the
// leaves.
func TestMaxInFlightOfSeveralLeavesIsALowerBound(t *testing.T) {
	r := newRig(t, node.Options{})
	v, leaves := several(r, 3)
	call := func(leaf int, from, to time.Duration) {
		c := leaves[leaf].Enter(r.at(from), 1)
		c.Exit(r.at(to), false, 0)
	}
	// In second 0, one call at a time is in flight.
	call(0, 0, 300*ms)
	call(1, 300*ms, 600*ms)
	call(2, 600*ms, 900*ms)
	// In second 1, two calls are in flight nearly all the time. In second 2, two calls are in flight at the end.
	c0, c1 := leaves[0].Enter(r.at(1000*ms), 1), leaves[1].Enter(r.at(1010*ms), 1)
	c0.Exit(r.at(1980*ms), false, 0)
	c1.Exit(r.at(1990*ms), false, 0)
	d0, d1 := leaves[0].Enter(r.at(2900*ms), 1), leaves[2].Enter(r.at(2910*ms), 1)
	d0.Exit(r.at(3010*ms), false, 0)
	d1.Exit(r.at(3020*ms), false, 0)
	r.open(5 * time.Second)
	for i, want := range []int64{1, 2, 2, 2, 0} {
		if got := maxInFlight(t, v, r.zero+int64(i)); got != want {
			t.Errorf("second %d: at least %d in flight at once, want %d", i, got, want)
		}
	}
}

// Only one call at a time is in flight, so InFlightMax must be 1. InFlightMax is computed from the average in flight,
// too. A late entry, a lengthened second, or rounding raises this average above 1.
func TestMaxInFlightNeverExceedsTheTruth(t *testing.T) {
	for name, calls := range map[string]func(r *rig, s *node.Statistic){
		"late": func(r *rig, s *node.Statistic) {
			c := s.Enter(leap.Reading(3200*ms), 1) // the clock is at 4 s, so this stamp is late
			c.Exit(r.at(4900*ms), false, 0)
		},
		"entry and exit late": func(r *rig, s *node.Statistic) {
			c := s.Enter(leap.Reading(100*ms), 1)
			c.Exit(leap.Reading(3900*ms), false, 0)
			d := s.Enter(leap.Reading(4*time.Second), 1)
			d.Exit(r.at(5*time.Second-1), false, 0)
		},
		"resumed": func(r *rig, s *node.Statistic) {
			c := s.Resume(leap.Reading(3200*ms), 1)
			c.Exit(r.at(4900*ms), false, 0)
		},
	} {
		r := newRig(t, node.Options{})
		v, leaves := several(r, 2)
		leaves[0].Seal(r.at(4 * time.Second))
		calls(r, leaves[0])
		r.open(6 * time.Second)
		if got := maxInFlight(t, v, r.zero+4); got != 1 {
			t.Errorf("%s: %d in flight at once", name, got)
		}
	}
	r := newRig(t, node.Options{})
	v, leaves := several(r, 2)
	leaves[0].Enter(r.at(1), 1) // the call word rounds this stamp up to a multiple of a tick
	r.wall = -700 * ms
	for i := int64(1); i < 20; i++ {
		if i == 10 {
			r.wall = 0
		}
		r.open(time.Duration(i+2) * time.Second)
		if got := maxInFlight(t, v, r.zero+i); got != 1 {
			t.Errorf("slewed second %d: %d in flight at once", i, got)
		}
	}
}

// The sum of the maxima of several stripes may exceed the true maximum in flight. InFlightMax must not exceed the true
// maximum.
func TestMaxInFlightOfStripesDoesNotAddUp(t *testing.T) {
	r := newRig(t, node.Options{})
	r.Grow()
	r.Grow()
	r.Seal(time.Second)
	semaphore := make(chan struct{}, 4)
	var wg sync.WaitGroup
	var stop atomic.Bool
	for range 16 {
		wg.Go(func() {
			for !stop.Load() {
				semaphore <- struct{}{}
				c := r.Statistic.Enter(r.line.Now(), 1)
				runtime.Gosched()
				c.Exit(r.line.Now(), false, 0)
				<-semaphore
			}
		})
	}
	for i := range int64(200) {
		for range 10 {
			time.Sleep(20 * time.Microsecond)
			r.at(time.Duration(i+1)*time.Second + 100*ms)
		}
		r.Seal(time.Duration(i+2) * time.Second)
		if n := r.second(t, i+1).InFlightMax; n > 4 {
			t.Errorf("second %d: %d maximum in flight, with %d stripes and a semaphore of 4", i+1, n, r.Stripes())
		}
	}
	stop.Store(true)
	wg.Wait()
}

// Limits on concurrency set counters. With counters, all calls of a statistic enter through one stripe, and InFlightMax
// is exact.
func TestMaxInFlightIsExactWithCounters(t *testing.T) {
	r := newRig(t, node.Options{})
	r.Grow()
	r.Grow()
	r.Seal(time.Second)
	var counter atomic.Int64
	r.SetCounters(&counter)
	const n = 16
	var in, wg sync.WaitGroup
	in.Add(n)
	for i := range n {
		wg.Go(func() {
			c := r.Enter(1100*ms, 1+int64(i%2))
			in.Done()
			in.Wait()
			c.Exit(1200*ms, false, 0)
		})
	}
	wg.Wait()
	r.Seal(2 * time.Second)
	if got := r.second(t, 1).InFlightMax; got != n || counter.Load() != 0 {
		t.Errorf("maximum in flight %d, want %d; now %d", got, n, counter.Load())
	}
}
