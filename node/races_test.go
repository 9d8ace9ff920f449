package node

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// enterAround does the same as Statistic.Enter for one call, but calls event after the first load of the end mark and
// before the addition to the call word. A goroutine may lose its processor at this point. enterAround returns false if
// the call was taken back.
func enterAround(t *testing.T, s *Statistic, now leap.Reading, event func()) bool {
	t.Helper()
	st := s.pick()
	mark := st.end.Load()
	if !st.canEnterLockFree(mark, now) {
		t.Fatal("the call does not enter without a lock")
	}
	event()
	st.entered.Add(entryWord(now))
	return st.end.Load() == mark || !s.reconcileEnter(st, now)
}

// If counters are set while a call enters, the call finds a changed end mark, and the counters include the call.
func TestCallThatSetCountersOvertakesIsCounted(t *testing.T) {
	var now time.Duration
	s := newContended(t, &now)
	var counter atomic.Int64
	if !enterAround(t, s, 0, func() { s.SetCounters(&counter) }) {
		t.Fatal("the call was taken back")
	}
	if got := counter.Load(); got != 1 {
		t.Errorf("the counter has %d calls in flight, want 1", got)
	}
}

// If a statistic is retired while a call enters, the call is taken back, and the statistic shows no activity.
func TestCallThatRetirementOvertakesIsTakenBack(t *testing.T) {
	now := 10 * time.Second
	s := newContended(t, &now)
	began := s.LastUsed(0)
	now += 100 * time.Second
	s.Seal(leap.Reading(now))
	if enterAround(t, s, leap.Reading(now), func() { s.Retire(leap.Reading(now), began+50) }) {
		t.Fatal("the call entered a retired statistic")
	}
	if got := s.LastUsed(leap.Reading(now)); got != began {
		t.Errorf("last used %d seconds after it began, want never", got-began)
	}
}

// Enter and Retire run at the same time. Either the call enters and Retire fails, or Retire succeeds and the call is
// refused. A call may enter after Retire has first checked for calls and before Retire changes the end marks. Retire
// must therefore check for calls again after the change.
func TestRetireRacesWithEnter(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 {
		t.Skip("needs two processors")
	}
	rounds := int64(50_000)
	if testing.Short() {
		rounds = 5_000
	}
	now := 100 * time.Second
	config := newContended(t, &now).first.config
	var s *Statistic
	var call Call
	// If lead is positive, it delays Enter. If lead is negative, it delays Retire. After each round, the test changes
	// lead so that Enter and Retire each win about half of the rounds.
	var lead int
	var round atomic.Int64 // latest round that has begun
	var done atomic.Int64  // latest round in which Enter has returned
	wait := func(counter *atomic.Int64, until int64) {
		for spins := 0; counter.Load() < until; spins++ {
			if spins > 10_000 { // the other goroutine may need this processor
				runtime.Gosched()
			}
		}
	}
	delay := func(loads int) {
		for range loads {
			round.Load()
		}
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := int64(1); i <= rounds; i++ {
			wait(&round, i)
			delay(lead)
			call = s.Enter(leap.Reading(now), 1)
			done.Store(i)
		}
	})
	var retired, entered int
	for i := int64(1); i <= rounds; i++ {
		s = New(config, leap.Reading(now))
		for range 3 {
			s.grow(s.extra.Load()) // more stripes make Retire take longer
		}
		now += time.Second
		s.Seal(leap.Reading(now))
		round.Store(i)
		delay(-lead)
		gone := s.Retire(leap.Reading(now), s.since+1)
		wait(&done, i)
		switch {
		case gone != call.IsZero():
			t.Errorf("round %d: retired %t, and the call was refused %t", i, gone, call.IsZero())
		case gone:
			retired++
			lead -= 5
		default:
			entered++
			lead += 7
		}
	}
	wg.Wait()
	t.Logf("retired %d, entered %d", retired, entered)
}

// A new stripe gets the end mark of the open bucket. Calls of this bucket can therefore enter through the new stripe
// without its lock.
func TestNewStripesKnowTheOpenBucket(t *testing.T) {
	var now time.Duration
	s := newContended(t, &now)
	now = 600 * time.Millisecond
	s.Seal(leap.Reading(now))
	s.grow(nil)
	for i, st := range s.picked() {
		if st.length.Load() != s.first.length.Load() || !st.canEnterLockFree(st.end.Load(), leap.Reading(now)) {
			t.Errorf("stripe %d has a bucket of %v, want %v",
				i, time.Duration(st.length.Load()), time.Duration(s.first.length.Load()))
		}
	}
}

// A view reads all of its leaves in the same bucket. If another goroutine turns a leaf during the reading, the view
// reads all leaves again.
func TestViewReadsAllLeavesInOneBucket(t *testing.T) {
	var now time.Duration
	a := newContended(t, &now)
	b := New(a.first.config, 0)
	v := NewView(a.first.config, 0)
	v.Add(a)
	v.Add(b)
	for turns := range readAttempts {
		var buckets []time.Duration
		again := 0
		v.readInOneBucket(leap.Reading(now), func() { buckets, again = nil, again+1 }, func(s *Statistic) {
			buckets = append(buckets, s.start)
			if s == a && again <= turns { // another reader turns the leaf b
				now += 500 * time.Millisecond
				b.Seal(leap.Reading(now))
			}
		})
		if again != turns+1 || len(buckets) != 2 || buckets[0] != buckets[1] {
			t.Errorf("%d turns: buckets %v after %d attempts, want two equal buckets after %d",
				turns, buckets, again, turns+1)
		}
	}
}

// Of several equal slides, the cache of the peak keeps the latest one. If the cache kept the earliest one, snapshots of
// a statistic with a steady rate would be slow: in every second, a snapshot would read the records of a minute again.
func TestLatestOfEqualPeaksIsKept(t *testing.T) {
	var now time.Duration
	s := newContended(t, &now)
	first := s.since
	for range 10 {
		s.Enter(leap.Reading(now), 1)
		now += time.Second
		s.Seal(leap.Reading(now))
	}
	if got := s.history.peak.second; got != first+9 {
		t.Errorf("the peak of second %d is kept, want that of second 9", got-first)
	}
}

// removeHeld holds the lock of the retired leaf s, and starts n goroutines that remove s from v. It runs event while
// these goroutines wait for the lock.
func removeHeld(v *View, s *Statistic, since int64, n int, event func()) {
	var wg sync.WaitGroup
	s.mu.Lock()
	for range n {
		wg.Go(func() { v.Remove(since) })
	}
	for range 100 {
		runtime.Gosched() // usually lets all goroutines reach the lock
	}
	event()
	s.mu.Unlock()
	wg.Wait()
}

// A leaf that is added during Remove stays in the view. Concurrent calls of Remove add the counts of a removed leaf
// only once.
func TestRemoveRacesWithAddAndRemove(t *testing.T) {
	var now time.Duration
	config := newContended(t, &now).first.config
	for range 50 {
		begin := leap.Reading(now)
		a, b, v := New(config, begin), New(config, begin), NewView(config, begin)
		v.Add(a)
		c := a.Enter(begin, 1)
		c.Exit(begin, false, 0)
		now += 100 * time.Second
		since := a.since + 50
		if !a.Retire(leap.Reading(now), since) {
			t.Fatal("not retired")
		}
		removeHeld(v, a, since, 3, func() { v.Add(b) })
		if list := v.list(); len(list) != 1 || list[0] != b {
			t.Fatalf("the view has the leaves %v, want only the new one", list)
		}
		if total := v.Snapshot(leap.Reading(now), nil).Total; total.Pass != 1 {
			t.Fatalf("%d passes, want 1", total.Pass)
		}
	}
}
