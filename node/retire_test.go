package node_test

import (
	"maps"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// Only an idle statistic can be retired. A statistic is idle if it has no call in flight and no loan, and has recorded
// nothing in the given second or later. A statistic that began in the given second or later cannot be retired, even if
// it is idle.
func TestRetireOnlyIdleStatistics(t *testing.T) {
	const now = 100 * time.Second
	for name, tc := range map[string]struct {
		use  func(*rig)
		want bool
	}{
		"unused":                   {func(*rig) {}, true},
		"used long ago":            {func(r *rig) { r.call(ms, ms, false) }, true},
		"used just before":         {func(r *rig) { r.call(39*time.Second, ms, false) }, true},
		"used in the first second": {func(r *rig) { r.call(40*time.Second, ms, false) }, false},
		"in flight for long":       {func(r *rig) { r.pass(ms, 1) }, false},
		"in flight just now":       {func(r *rig) { r.Seal(now); r.pass(now, 1) }, false},
		"used just now":            {func(r *rig) { r.Seal(now); r.call(now, 0, false) }, false},
		"blocked just now":         {func(r *rig) { r.Seal(now); r.Block(now, 1) }, false},
		"used in a bucket before": {func(r *rig) {
			r.Seal(now - time.Second)
			r.call(now-ms, 0, false)
			r.Seal(now)
		}, false},
		"borrowed": {func(r *rig) {
			if _, ok := r.Occupy(now, time.Duration(r.zero+101)*time.Second, 1); !ok {
				t.Fatal("nothing was borrowed")
			}
		}, false},
	} {
		r := newRig(t, node.Options{})
		tc.use(r)
		if got := r.Retire(now, r.zero+40); got != tc.want {
			t.Errorf("%s: retired %t, want %t", name, got, tc.want)
		}
		if c := r.Enter(now+time.Minute, 1); c.IsZero() != tc.want {
			t.Errorf("%s: a later call is refused: %t", name, c.IsZero())
		}
	}
	r := newRig(t, node.Options{})
	if r.Retire(ms, r.zero) {
		t.Error("the statistic was retired in its first second")
	}
}

// A retired statistic records nothing, whichever method is called, and with any number of stripes. The records of the
// statistic stay readable.
func TestRetiredRecordsNothing(t *testing.T) {
	r := newRig(t, node.Options{})
	r.call(ms, ms, true)
	if !r.Retire(100*time.Second, r.zero+40) || r.Retire(100*time.Second, r.zero+40) {
		t.Fatal("not retired, or retired twice")
	}
	r.Seal(math.MaxInt64) // a retired statistic does not turn
	before := r.Snapshot(100*time.Second, nil)
	r.Grow()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i := range 100 {
				now := 100*time.Second + time.Duration(i)*ms
				if c := r.Enter(now, 1); !c.IsZero() || c.Exit(now, false, 0) != 0 {
					t.Error("a call entered")
				}
				if c := r.Enter(now, 3); !c.IsZero() {
					t.Error("a batch entered")
				}
				if r.Block(now, 1) {
					t.Error("a block was counted")
				}
				if _, ok := r.Occupy(now, time.Duration(r.zero+200)*time.Second, 1); ok {
					t.Error("passes were borrowed")
				}
			}
		})
	}
	wg.Wait()
	after := r.Snapshot(300*time.Second, nil)
	if after.Total != before.Total || after.InFlight != 0 || before.Total.Complete != 1 {
		t.Errorf("before %+v, after %+v", before, after)
	}
	if m := r.second(t, 0); m.Complete != 1 {
		t.Errorf("%+v", m)
	}
}

// A leaf is added to a view after the view has read a second. The leaf counts in a later second, even if the stamp of
// its first event is in the second that the view has read.
func TestALateLeafDoesNotReopenASealedSecond(t *testing.T) {
	r := newRig(t, node.Options{})
	v := node.NewView(r.config, 0)
	v.Add(r.Statistic)
	late := node.New(r.config, 0) // created in second 0, added to the view in second 1
	r.open(1100 * ms)
	before, ok := v.Second(r.zero)
	v.Add(late)
	late.Enter(leap.Reading(400*ms), 1) // the stamp lies in the first bucket of the leaf
	if after, ok2 := v.Second(r.zero); !ok || !ok2 || after != before {
		t.Errorf("second 0 was %+v (%t) and is %+v (%t)", before, ok, after, ok2)
	}
	r.open(2 * time.Second)
	if m, ok := v.Second(r.zero + 1); !ok || m.Pass != 1 {
		t.Errorf("second 1 is %+v (%t)", m, ok)
	}
}

// When a leaf is removed, the view loses the records of the leaf. The view then no longer returns any second in which
// the leaf may have counted.
func TestViewLeavesOutUnknownSeconds(t *testing.T) {
	r := newRig(t, node.Options{})
	v := node.NewView(r.config, 0)
	v.Add(r.Statistic)
	r.call(30*time.Second, ms, false)
	r.open(100 * time.Second)
	if !r.Retire(100*time.Second, r.zero+40) {
		t.Fatal("not retired")
	}
	v.Remove(r.zero + 40)
	for i, want := range map[int64]bool{0: false, 30: false, 39: false, 40: true, 99: true, 100: false} {
		if m, ok := v.Second(r.zero + i); ok != want || m.Pass != 0 {
			t.Errorf("second %d: %+v, %t", i, m, ok)
		}
	}
	if _, whole := v.Sum(r.zero+39, r.zero+90); whole {
		t.Error("a sum with an unreadable second is reported as complete")
	}
	if s := v.Snapshot(r.at(100*time.Second), nil); s.Total.Complete != 1 || !v.Empty() {
		t.Errorf("%+v", s)
	}
}

// A view counts completions by code since it began. The completions of a leaf therefore stay in the view, and in a
// clone of the view, when the leaf is retired and when it is removed.
func TestCodesOutliveTheirLeaves(t *testing.T) {
	const now = 100 * time.Second
	r := newRig(t, node.Options{})
	v := node.NewView(r.config, 0)
	idle, busy := node.New(r.config, 0), r.Statistic
	idle.SplitByCode()
	v.Add(idle)
	v.Add(busy)
	answer := func(s *node.Statistic, at time.Duration, n int64, code node.Code) {
		c := s.Enter(r.at(at), n)
		c.Exit(r.at(at+ms), false, code)
	}
	answer(idle, ms, 3, 404)
	idle.Grow()
	answer(idle, ms, 2, 404)
	answer(idle, ms, 1, 0)
	answer(busy, 90*time.Second, 1, 404)
	answer(busy, 90*time.Second, 1, 200)
	check := func(when string, v *node.View) {
		t.Helper()
		var by node.Codes
		s := v.SnapshotByCode(r.at(now), nil, &by)
		got, want := maps.Collect(by.All()), map[node.Code]int64{0: 1, 200: 1, 404: 6}
		if !maps.Equal(got, want) || s.Total.Complete != 8 {
			t.Errorf("%s: %v of %d, want %v", when, got, s.Total.Complete, want)
		}
		checkTimesByCode(t, &by, map[node.Code][]time.Duration{
			// The test has called SplitByCode for the idle leaf, but not for the busy one.
			0: {ms}, 404: slices.Repeat([]time.Duration{ms}, 5),
		})
	}
	check("at first", v)
	if !idle.Retire(r.at(now), r.zero+40) || busy.Retire(r.at(now), r.zero+40) {
		t.Fatal("the idle leaf was not retired, or the busy one was")
	}
	check("retired", v)
	v.Remove(r.zero + 40)
	check("removed", v)
	check("removed, in a copy", v.Clone())
	check("read again", v)
	if !busy.Retire(r.at(10*time.Hour), r.zero+1000) {
		t.Fatal("the other leaf was not retired")
	}
	v.Remove(r.zero + 1000)
	check("both removed", v)
}

// A batch of n calls counts its code n times. Only the first exit of a call counts a code. The zero Call counts no
// code.
func TestACallHasOneCode(t *testing.T) {
	r := newRig(t, node.Options{})
	c := r.Enter(0, 7)
	c.Exit(0, false, 500)
	c.Exit(0, false, 200)
	c.End(true, 404)
	var none node.Call
	if none.Exit(0, false, 200) != 0 || none.End(false, 200) != 0 {
		t.Error("the zero Call ended")
	}
	var by node.Codes
	r.view.SnapshotByCode(0, nil, &by)
	if got, want := maps.Collect(by.All()), (map[node.Code]int64{0: 0, 500: 7}); !maps.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	r.Hold(0).Record(0, math.MaxInt64, false, 500)
	if r.view.SnapshotByCode(0, nil, &by); maps.Collect(by.All())[500] != math.MaxInt64 {
		t.Error("a code's count does not stop at the largest number")
	}
}
