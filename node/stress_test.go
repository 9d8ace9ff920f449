package node_test

import (
	"flag"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

var hammer = flag.Duration("hammer", 0, "duration of the stress test; if 0, some hundred seconds of its own clock")

// TestNothingIsLostAcrossTurns checks under stress that no count is lost or counted twice. Eight writers write at full
// speed. If the machine has fewer processors, the scheduler preempts them anywhere. The clock turns a bucket every few
// microseconds, the wall clock steps, and garbage is collected. A reader seals and reads every second when it ends.
// Sentinel's ring loses events under this load: it publishes a bucket before it clears the bucket, and may clear the
// bucket twice.
func TestNothingIsLostAcrossTurns(t *testing.T) {
	const writers = 8
	turns := int64(600) // number of seconds, each with ten buckets
	if testing.Short() {
		turns = 60
	}
	// Every call takes the time rt, fails, and has a code other than 0. A reader that saw only a part of a completion
	// would therefore find numbers that do not match.
	const rt = 3 * ms
	const codes = 5
	var clock, stepped atomic.Int64
	line := leap.NewTimeline(leap.Clock{
		Mono: func() time.Duration { return time.Duration(clock.Load()) },
		Wall: func() time.Time { return epoch.Add(time.Duration(clock.Load() + stepped.Load())) },
	})
	config, err := node.NewConfig(line, node.Options{SampleCount: 10})
	if err != nil {
		t.Fatal(err)
	}
	s, v := node.New(config, 0), node.NewView(config, 0)
	v.Add(s)

	var wg sync.WaitGroup
	var stop atomic.Bool
	var recorded [writers]node.Counts
	var answered [writers][codes]int64
	for w := range writers {
		wg.Go(func() {
			mine := &recorded[w]
			for i := 0; !stop.Load(); i++ {
				c := s.Enter(line.Now(), 1)
				mine.Pass++
				if i%5 == 0 {
					s.Block(line.Now(), 2)
					mine.Block += 2
				}
				if i%64 == 0 {
					runtime.Gosched() // with few processors, let the goroutine of the clock run
				}
				// The exit does not read the clock. Its stamp is computed so that every call takes exactly rt.
				c.Exit(c.Entered().Add(rt), true, node.Code(1+i%(codes-1)))
				answered[w][1+i%(codes-1)]++
				mine.Complete++
				mine.Exception++
			}
		})
	}

	check := func(what string, c node.Counts) {
		if c.RTSum != rt*time.Duration(c.Complete) || c.Exception != c.Complete ||
			(c.Complete > 0 && (c.RTMin != rt || c.RTMax != rt)) {
			t.Errorf("%s holds half a completion: %+v", what, c)
		}
	}
	first := line.At(0).Index
	records := map[int64]node.MetricNode{} // the records of the latest seconds
	var sum node.Counts
	next := first
	var by node.Codes
	var reported [codes]int64
	read := func() {
		now := line.Now()
		s.Seal(now)
		open := line.At(now).Index
		for ; next < open; next++ {
			m, ok := v.Second(next)
			if !ok {
				t.Fatalf("second %d cannot be read", next-first)
			}
			check("a second", m.Counts)
			records[next] = m
			delete(records, next-100)
			sum = sum.Add(m.Counts)
		}
		for i := max(first, next-50); i < next; i++ {
			if m, ok := v.Second(i); !ok || m != records[i] {
				t.Fatalf("second %d was %+v and is %+v (%t)", i-first, records[i], m, ok)
			}
		}
		check("the window", v.Window(now).Counts)
		check("the minute", v.Minute(now).Counts)
		var h node.Histogram
		snap := v.SnapshotByCode(now, &h, &by)
		check("the total", snap.Total)
		if snap.InFlight < 0 || snap.InFlight > writers || snap.Total.Pass-snap.Total.Complete != snap.InFlight {
			t.Errorf("in flight %d of %+v", snap.InFlight, snap.Total)
		}
		rest := snap.Total.Complete
		for code, n := range by.All() {
			if rest -= n; n < reported[code] || code == 0 && n > 0 {
				t.Errorf("code %d was %d and is %d", code, reported[code], n)
			}
			reported[code] = n
		}
		if rest != 0 {
			t.Errorf("%d completions without a code", rest)
		}
		var n int64
		for _, c := range h.Native() {
			n += c
		}
		if n != snap.Total.Complete {
			t.Errorf("histogram has %d of %d", n, snap.Total.Complete)
		}
	}
	begin := time.Now()
	for next < first+turns || time.Since(begin) < *hammer {
		// A step forward skips an hour of names. A step back lets names lead the wall clock. All names stay unique.
		switch next % 128 {
		case 40:
			stepped.Add(int64(time.Hour))
		case 90:
			stepped.Add(-int64(2 * time.Second))
		}
		for range 7 {
			clock.Add(int64(43 * ms))
			runtime.Gosched()
		}
		read()
		if next%64 == 0 {
			runtime.GC()
		}
	}
	stop.Store(true)
	wg.Wait()
	clock.Add(int64(2 * time.Second))
	read()

	var want node.Counts
	for _, c := range recorded {
		want = want.Add(c)
	}
	want.RTSum, want.RTMin, want.RTMax = rt*time.Duration(want.Complete), rt, rt
	if sum != want {
		t.Errorf("sealed seconds add up to\n     %+v,\nwant %+v", sum, want)
	}
	for code := range reported {
		var n int64
		for _, a := range answered {
			n += a[code]
		}
		if reported[code] != n {
			t.Errorf("code %d: %d calls, want %d", code, reported[code], n)
		}
	}
	if total := v.Snapshot(line.Now(), nil).Total; total != want {
		t.Errorf("totals are\n     %+v,\nwant %+v", total, want)
	}
	t.Logf("%d calls in %d seconds of %d buckets", want.Pass, next-first, 10)
}

// Stripes are added while calls that entered through the old stripes are in flight. Each call must exit through
// its own stripe.
func TestGrowthKeepsWhatIsInFlight(t *testing.T) {
	for range 20 {
		r := newRig(t, node.Options{})
		const goroutines, held = 16, 50
		var wg, together sync.WaitGroup
		start := make(chan struct{})
		for range goroutines {
			wg.Go(func() {
				var calls [held]*call
				<-start
				for round := range 200 {
					for i := range calls {
						c := r.Enter(0, 1)
						calls[i] = &c
					}
					if round == 100 { // in this round, the calls of all goroutines are in flight together
						together.Done()
						together.Wait()
					}
					for _, c := range calls {
						c.Exit(0, false, 0)
					}
				}
			})
		}
		together.Add(goroutines)
		close(start)
		wg.Wait()
		r.Seal(time.Second)
		m := r.second(t, 0)
		if want := int64(goroutines * held * 200); m.Pass != want || m.Complete != want || m.InFlight != 0 {
			t.Fatalf("%+v, want %d calls and none in flight", m, want)
		}
		if m.InFlightMax < 1 || m.InFlightMax > goroutines*held {
			t.Fatalf("%d in flight at once, and there were never more than %d", m.InFlightMax, goroutines*held)
		}
	}
}
