package bench_test

import (
	"testing"
	"time"

	"github.com/windowstat/windowstat/bench"
)

func TestEveryRivalCanBeCalled(t *testing.T) {
	for _, r := range append(bench.Rivals(), bench.Limiters(bench.NeverReached)...) {
		t.Run(r.Name, func(t *testing.T) {
			rec, err := r.New(bench.Names(3))
			if err != nil {
				t.Fatal(err)
			}
			if rec.Close != nil {
				defer rec.Close()
			}
			for i := range 3 {
				rec.Call(i)
				if rec.Took != nil {
					rec.Took(i, 20*time.Millisecond)
				}
			}
		})
	}
}

// TestEveryLimitApplies checks that every limit refuses calls. A limit without effect would have no cost.
func TestEveryLimitApplies(t *testing.T) {
	for _, r := range bench.Limiters(0) {
		rec, err := r.New(bench.Names(1))
		if err != nil {
			t.Fatal(err)
		}
		if refused := refuses(rec); refused != (r.Name != "windowstat-without-limit") {
			t.Errorf("%s, which allows nothing: the call was refused: %v", r.Name, refused)
		}
		if rec.Close != nil {
			rec.Close()
		}
	}
	if rec, err := bench.NewConcurrency(3, 0); err != nil || !refuses(rec) {
		t.Errorf("a limit that allows nothing in flight: the call was not refused, %v", err)
	}
}

func refuses(rec bench.Recorder) (refused bool) {
	defer func() { refused = recover() != nil }()
	rec.Call(0)
	return
}

func TestLoadIsTheSameEachTime(t *testing.T) {
	picks, again := bench.Picks(100), bench.Picks(100)
	if n := len(picks); n&(n-1) != 0 {
		t.Errorf("%d picks are not a power of two", n)
	}
	for i, p := range picks {
		if p < 0 || p >= 100 || p != again[i] {
			t.Fatalf("pick %d is %d and %d", i, p, again[i])
		}
	}
	var below int
	for _, rt := range bench.ResponseTimes(10_000) {
		if rt < 20*time.Millisecond {
			below++
		}
	}
	if below < 4800 || below > 5200 {
		t.Errorf("%d of 10,000 response times are below 20 ms, want half", below)
	}
}

func TestVersionsNameEveryRival(t *testing.T) {
	if n := len(bench.Versions()); n < 7 {
		t.Errorf("only %d modules: %v", n, bench.Versions())
	}
}

// The simple windows must be correct at least for one call after the other.
func TestSimpleWindowsCount(t *testing.T) {
	type window interface {
		Enter(now time.Duration)
		Exit(now, rt time.Duration)
		Sum(now time.Duration) bench.Cell
	}
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		window window
		at     time.Duration // of the reading
		want   bench.Cell
	}{
		"fixed-window":    {bench.NewFixedWindow(), 10_900 * ms, bench.Cell{Pass: 1, Complete: 2, RTSum: 900 * ms}},
		"sentinel-ring":   {bench.NewSentinelRing(), 10_400 * ms, bench.Cell{Pass: 2, Complete: 2, RTSum: 900 * ms}},
		"sub-window-list": {bench.NewSubWindowList(), 10_400 * ms, bench.Cell{Pass: 2, Complete: 2, RTSum: 900 * ms}},
		"second-map":      {bench.NewSecondMap(), 11_200 * ms, bench.Cell{Pass: 1, Complete: 2, RTSum: 900 * ms}},
	} {
		c.window.Enter(2000 * ms) // too long ago
		c.window.Exit(2100*ms, 100*ms)
		c.window.Enter(9600 * ms)
		c.window.Enter(10_000 * ms)
		c.window.Exit(10_200*ms, 200*ms)
		c.window.Exit(10_300*ms, 700*ms)
		if got := c.window.Sum(c.at); got != c.want {
			t.Errorf("%s has %+v, want %+v", name, got, c.want)
		}
	}
}

// A writer that is late by a round of the ring has no bucket.
func TestSentinelRingDropsLateCalls(t *testing.T) {
	r := bench.NewSentinelRing()
	r.Enter(30 * time.Second)
	r.Enter(20 * time.Second)
	var passes int64
	r.Each(func(_ int64, c bench.Cell) { passes += c.Pass })
	if passes != 1 {
		t.Errorf("%d of 2 passes are left, want 1", passes)
	}
}
