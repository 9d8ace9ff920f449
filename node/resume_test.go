package node_test

import (
	"testing"
	"time"

	"github.com/windowstat/windowstat/node"
)

// A resumed call passed in an earlier process. In this process, the call is in flight and completes, but counts no
// pass.
func TestResume(t *testing.T) {
	r := newRig(t, node.Options{})
	first, batch := r.Resume(100*ms, 1), r.Resume(200*ms, 3)
	if got := r.InFlight(); got != 2 {
		t.Fatalf("%d in flight, want 2", got)
	}
	later := r.Enter(1300*ms, 1)
	for _, x := range []struct {
		call   *call
		at     time.Duration
		failed bool
		n      int64
	}{{&later, 1400 * ms, false, 1}, {&first, 2500 * ms, true, 1}, {&batch, 3500 * ms, false, 3}} {
		if n := x.call.Exit(x.at, x.failed, 0); n != x.n {
			t.Errorf("the exit at %v counted %d, want %d", x.at, n, x.n)
		}
	}
	r.Seal(4 * time.Second)
	for i, want := range []node.MetricNode{
		{InFlight: 2, InFlightMax: 2, InFlightMaxUpper: 2, InFlightTime: 1700*ms - rest(100*ms) - rest(200*ms)},
		{
			Counts:   node.Counts{Pass: 1, Complete: 1, RTSum: 100 * ms},
			InFlight: 2, InFlightMax: 3, InFlightMaxUpper: 3, InFlightTime: 2100 * ms,
		},
		{
			Counts:   node.Counts{Complete: 1, Exception: 1, RTSum: 2400 * ms},
			InFlight: 1, InFlightMax: 2, InFlightMaxUpper: 2, InFlightTime: 1500*ms + rest(100*ms),
		},
		{
			Counts:      node.Counts{Complete: 3, RTSum: 9900 * ms},
			InFlightMax: 1, InFlightMaxUpper: 1, InFlightTime: 500*ms + rest(200*ms),
		},
	} {
		got := r.second(t, int64(i))
		got.Start, got.PassPeak, got.RTMin, got.RTMax = want.Start, 0, 0, 0
		if got != want {
			t.Errorf("second %d: %+v, want %+v", i, got, want)
		}
	}
	if got := r.Snapshot(4*time.Second, nil).Total; got.Pass != 1 || got.Complete != 5 {
		t.Errorf("total: %+v", got)
	}
}
