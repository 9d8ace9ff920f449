package node_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/windowstat/windowstat/node"
)

// For n seconds, traffic makes calls at random times, on average perSecond calls in each second. The response times are
// log-normally distributed around the median.
func (r *rig) traffic(perSecond float64, median time.Duration, n int) {
	type event struct {
		at    time.Duration
		call  int
		enter bool
	}
	random := rand.New(rand.NewPCG(3, 4))
	var events []event
	var calls []call
	for at := time.Duration(0); at < time.Duration(n)*time.Second; {
		at += time.Duration(random.ExpFloat64() / perSecond * float64(time.Second))
		rt := time.Duration(float64(median) * math.Exp(random.NormFloat64()/2))
		events = append(events, event{at, len(calls), true}, event{at + rt, len(calls), false})
		calls = append(calls, call{})
	}
	slices.SortStableFunc(events, func(a, b event) int { return int(a.at - b.at) })
	for _, e := range events {
		if c := &calls[e.call]; e.enter {
			*c = r.Enter(e.at, 1)
		} else {
			c.Exit(e.at, false, 0)
		}
	}
}

// If the history of a statistic is full of busy seconds, the statistic takes at most as many bytes as Reservation
// returns. The records of its seconds are small.
func TestMemoryOfABusyStatistic(t *testing.T) {
	for _, tc := range []struct {
		perSecond float64
		median    time.Duration
		most      int64 // maximum of Memory.Seconds; a size class of the allocator
	}{
		{1, 20 * ms, 4864},
		{5, 3 * ms, 8192},
		{5, 20 * ms, 9472},
		{20, 20 * ms, 10240},
		{100, 20 * ms, 12288},
		{200, 20 * ms, 13568},
	} {
		r := newRig(t, node.Options{})
		// An unused statistic takes 256 bytes on 64-bit platforms, and fewer on 32-bit platforms.
		if m := r.Memory(); m.Seconds+m.Histograms != 0 || m.Statistic < 200 || m.Statistic > 256 {
			t.Errorf("an unused statistic takes %+v", m)
		}
		r.traffic(tc.perSecond, tc.median, 660)
		m := r.Memory()
		if m.Seconds > tc.most || m.Sum() > r.config.Reservation() || m.Histograms == 0 {
			t.Errorf("%v calls a second of %v: %+v, %d in total of %d reserved; at most %d in records",
				tc.perSecond, tc.median, m, m.Sum(), r.config.Reservation(), tc.most)
		}
		// A retired statistic keeps its totals. It drops the records that are older than the history allows.
		pass := r.view.Snapshot(r.at(10*time.Hour), nil).Total.Pass
		if !r.Retire(10*time.Hour, r.zero+3600) {
			t.Fatal("not retired")
		}
		if m := r.Memory(); m.Seconds+m.Histograms != 0 {
			t.Errorf("a retired statistic takes %+v", m)
		}
		r.view.Remove(r.zero + 3600)
		if n := r.view.Snapshot(r.at(10*time.Hour), nil).Total.Pass; n != pass {
			t.Errorf("%d passes, want %d", n, pass)
		}
	}
}

// After a burst of long records, a store frees the memory that it no longer needs.
func TestABurstReturnsItsMemory(t *testing.T) {
	r := newRig(t, node.Options{History: time.Minute})
	for s := range 300 {
		n := 1
		if s < 100 {
			n = 3000
		}
		for i := range n {
			at := time.Duration(s)*time.Second + time.Duration(i)*300*time.Microsecond
			c := r.Enter(at, 1)
			c.Exit(at+time.Duration(1+i%7*i)*time.Microsecond, i%2 == 0, 0)
		}
		if s == 100 && r.Memory().Seconds < 1024 {
			t.Fatalf("the burst takes %+v; this test needs more", r.Memory())
		}
	}
	if m := r.Memory(); m.Seconds > 1024 {
		t.Errorf("%+v", m)
	}
}
