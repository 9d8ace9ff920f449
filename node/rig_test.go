package node_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

const ms = time.Millisecond

// rig is a statistic with its own view, on a timeline whose clocks the test sets. The monotonic clock starts at 0, when
// the wall clock is at a full second. Methods of the rig that take a reading first move the clock to this reading,
// because a real clock has reached every reading that it has returned.
type rig struct {
	*node.Statistic
	view   *node.View
	line   *leap.Timeline
	config *node.Config
	zero   int64         // index of the second that starts at reading 0
	now    time.Duration // reading of the clock, set by tests that move the clock themselves
	wall   time.Duration // steps of the wall clock so far

	latest atomic.Int64 // latest reading that a method got
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func newRig(t testing.TB, o node.Options) *rig {
	t.Helper()
	r := &rig{}
	r.line = leap.NewTimeline(leap.Clock{
		Mono: r.clock,
		Wall: func() time.Time { return epoch.Add(r.clock() + r.wall) },
	})
	config, err := node.NewConfig(r.line, o)
	if err != nil {
		t.Fatal(err)
	}
	r.zero = r.line.At(0).Index
	r.config = config
	r.Statistic = node.New(config, 0)
	r.view = node.NewView(config, 0)
	r.view.Add(r.Statistic)
	return r
}

func (r *rig) clock() time.Duration { return max(r.now, time.Duration(r.latest.Load())) }

// The method at returns now as a leap.Reading. If the clock is before this reading, at first moves the clock to it.
func (r *rig) at(now time.Duration) leap.Reading {
	for {
		latest := r.latest.Load()
		if int64(now) <= latest || r.latest.CompareAndSwap(latest, int64(now)) {
			return leap.Reading(now)
		}
	}
}

// open moves the clock to the reading now, and returns the second that contains this reading.
func (r *rig) open(now time.Duration) leap.Second { return r.line.At(r.at(now)) }

// call is a node.Call of a rig. Its Exit also moves the clock of the rig.
type call struct {
	node.Call
	r *rig
}

func (c *call) Exit(now time.Duration, failed bool, code node.Code) int64 {
	return c.Call.Exit(c.r.at(now), failed, code)
}

func (r *rig) Enter(now time.Duration, n int64) call {
	return call{Call: r.Statistic.Enter(r.at(now), n), r: r}
}

func (r *rig) Resume(now time.Duration, n int64) call {
	return call{Call: r.Statistic.Resume(r.at(now), n), r: r}
}

func (r *rig) Block(now time.Duration, n int64) bool { return r.Statistic.Block(r.at(now), n) }

func (r *rig) Occupy(now, bucket time.Duration, n int64) (node.Loan, bool) {
	return r.Statistic.Occupy(r.at(now), bucket, n)
}

func (r *rig) Retire(now time.Duration, since int64) bool {
	return r.Statistic.Retire(r.at(now), since)
}

func (r *rig) Seal(now time.Duration) { r.Statistic.Seal(r.at(now)) }

func (r *rig) PassQPS(now time.Duration) float64 { return r.view.PassQPS(r.at(now)) }

func (r *rig) Window(now time.Duration) node.Window { return r.view.Window(r.at(now)) }

func (r *rig) Minute(now time.Duration) node.Window { return r.view.Minute(r.at(now)) }

func (r *rig) Snapshot(now time.Duration, h *node.Histogram) node.Snapshot {
	return r.view.Snapshot(r.at(now), h)
}

func (r *rig) Bucket(now time.Duration, back int) node.Counts { return r.view.Bucket(r.at(now), back) }

func (r *rig) InFlight() int64 { return r.view.InFlight() }

func (r *rig) Second(index int64) (node.MetricNode, bool) { return r.view.Second(index) }

func (r *rig) Sum(from, to int64) (node.Counts, bool) { return r.view.Sum(from, to) }

func (r *rig) Histogram(from, to int64, h *node.Histogram) bool { return r.view.Histogram(from, to, h) }

// call records a whole call. The parameter at is the reading of the entry, and rt is the response time.
func (r *rig) call(at, rt time.Duration, failed bool) {
	c := r.Enter(at, 1)
	c.Exit(at+rt, failed, 0)
}

// pass records the entries of n calls. The parameter at is the reading of all entries. The calls never end.
func (r *rig) pass(at time.Duration, n int) {
	for range n {
		r.Enter(at, 1)
	}
}

// second returns the record of the sealed second i. Second 0 starts at reading 0.
func (r *rig) second(t testing.TB, i int64) node.MetricNode {
	t.Helper()
	m, ok := r.Second(r.zero + i)
	if !ok {
		t.Fatalf("second %d cannot be read", i)
	}
	if want := epoch.Add(time.Duration(i) * time.Second); m.Start != want && r.wall == 0 {
		t.Fatalf("second %d starts at %v, want %v", i, m.Start, want)
	}
	return m
}
