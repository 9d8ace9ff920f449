package node_test

import (
	"testing"
	"time"

	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// A clone of a view never reports fewer call-seconds than the original has reported.
func TestCallSecondsOfACloneNeverFall(t *testing.T) {
	r := newRig(t, node.Options{})
	c := r.Enter(0, 1)
	reported := r.Snapshot(2*time.Second, nil).InFlightSeconds
	c.Exit(time.Second, false, 0) // the stamp of the exit is before the reading of the snapshot
	if got := r.view.Clone().Snapshot(r.at(2*time.Second), nil).InFlightSeconds; got != reported || got < 1.9 {
		t.Errorf("the clone reports %v s, the original had reported %v", got, reported)
	}
}

// The reading of a snapshot lies in the open bucket, but the clock has passed the end of this bucket. The snapshot does
// not turn the statistic. It reports call-seconds up to the end of the open bucket, and not up to the time of the
// clock.
func TestCallSecondsEndWithTheOpenBucket(t *testing.T) {
	r := newRig(t, node.Options{})
	r.Enter(0, 1)
	r.at(900 * ms) // move the clock past the end of the bucket; this does not turn the statistic
	if got := r.view.Snapshot(leap.Reading(100*ms), nil).InFlightSeconds; got != 0.5 {
		t.Errorf("%v call-seconds, want 0.5", got)
	}
}

// The sum of the ages in a snapshot contains only calls in flight. It does not contain a call that has ended, even if
// this call entered with a stamp after the open bucket.
func TestAgeAfterACallWithALaterStamp(t *testing.T) {
	r := newRig(t, node.Options{})
	r.Enter(0, 1)
	later := r.Statistic.Enter(leap.Reading(3*time.Second), 1)
	later.Exit(r.at(4*time.Second), false, 0)
	if got := r.Snapshot(4*time.Second, nil).InFlightElapsed; got != 4 {
		t.Errorf("the call in flight is %v s old, want 4", got)
	}
}

// Fill copies the passes of a view into a quota, and also the passes that waiting calls have borrowed.
func TestFilledQuotaHasBorrowedPasses(t *testing.T) {
	r := newRig(t, node.Options{})
	base := time.Duration(r.zero) * time.Second
	r.pass(0, 2)
	if _, ok := r.Occupy(100*ms, base+500*ms, 3); !ok {
		t.Fatal("nothing was borrowed")
	}
	q := node.NewQuota(r.config, 10, false)
	q.Fill(r.view, r.at(200*ms))
	if passes, waiting := q.Passes(base), q.Waiting(base); passes != 2 || waiting != 3 {
		t.Errorf("%d passes and %d borrowed ones, want 2 and 3", passes, waiting)
	}
}

// A call with a loan waits until the bucket of the loan begins. From then on, Waiting does not count the call and its
// passes, even if no event was recorded in the meantime.
func TestWaitingEndsWithTheBucket(t *testing.T) {
	for at, want := range map[time.Duration][2]int64{499 * ms: {1, 3}, 500 * ms: {0, 0}} {
		r := newRig(t, node.Options{})
		if _, ok := r.Occupy(0, time.Duration(r.zero)*time.Second+500*ms, 3); !ok {
			t.Fatal("nothing was borrowed")
		}
		if calls, passes := r.view.Waiting(r.at(at)); calls != want[0] || passes != want[1] {
			t.Errorf("at %v: %d calls wait with %d passes, want %v", at, calls, passes, want)
		}
	}
}

// A leaf keeps its histograms for a minute by default, so a leaf that began less than a minute ago still has all of
// them. For such a leaf, Histogram returns true even if the given range begins more than a minute ago.
func TestHistogramsBeforeALeafBegan(t *testing.T) {
	r := newRig(t, node.Options{})
	v := node.NewView(r.config, 0)
	r.open(100 * time.Second)
	s := node.New(r.config, r.at(100*time.Second))
	v.Add(s)
	c := s.Enter(r.at(100*time.Second), 1)
	c.Exit(r.at(100*time.Second+ms), false, 0)
	r.open(102 * time.Second)
	var h node.Histogram
	if !v.Histogram(r.zero, r.zero+101, &h) || h.Count() != 1 {
		t.Errorf("not whole, or %d response times, want 1", h.Count())
	}
}
