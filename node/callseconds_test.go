package node_test

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// total returns the call-seconds of all calls up to the reading now. The result is rounded to microseconds, because a
// float64 is not exact to the nanosecond.
func total(r *rig, now time.Duration) time.Duration {
	return time.Duration(math.Round(r.Snapshot(now, nil).InFlightSeconds*1e6)) * time.Microsecond
}

// spent returns the sum of the call-seconds of the seconds [from, to).
func spent(v *node.View, from, to int64) (sum time.Duration) {
	for _, m := range v.AppendSeconds(nil, from, to) {
		sum += m.InFlightTime
	}
	return sum
}

// Little's law holds to the nanosecond: over all seconds, the call-seconds equal the sum of the response times.
func TestSecondsAddUpToResponseTimes(t *testing.T) {
	for _, buckets := range []int{1, 2, 10} {
		r := newRig(t, node.Options{SampleCount: buckets})
		random := rand.New(rand.NewPCG(uint64(buckets), 1))
		var open []*call
		at := time.Duration(0)
		for i := range 20_000 {
			at += time.Duration(random.ExpFloat64() * float64(7*ms))
			switch {
			case random.IntN(100) == 0 && i < 19_000: // move to a multiple of 500 ms, or to 1 ns before or after it
				at = at/(500*ms)*(500*ms) + 500*ms + time.Duration(random.IntN(3)-1)
			case random.IntN(1000) == 0:
				at += 5 * time.Second
			}
			if i < 19_000 && random.IntN(2) == 0 {
				c := r.Enter(at, 1)
				open = append(open, &c)
			} else if len(open) > 0 {
				k := random.IntN(len(open))
				open[k].Exit(at, false, 0)
				open = append(open[:k], open[k+1:]...)
			}
		}
		for _, c := range open {
			c.Exit(at, false, 0)
		}
		r.Seal(at + time.Second)
		first := r.line.At(r.at(at+time.Second)).Index - 500
		want := r.Snapshot(at+time.Second, nil)
		sum := spent(r.view, first, first+500)
		got := want.Total.RTSum
		seconds := float64(got/time.Second) + (got % time.Second).Seconds()
		if first > r.zero || sum != got || want.InFlightSeconds != seconds {
			t.Errorf("%d buckets: response times of %v, call-seconds of %v, in total %v s",
				buckets, got, sum, want.InFlightSeconds)
		}
	}
}

// Each call in flight spends call-seconds in skipped seconds, too. The call-seconds of a second are the same whether
// the statistic turns in every second, or turns once and skips many seconds.
func TestTrapSkippedSeconds(t *testing.T) {
	for name, each := range map[string]bool{"turn in each second": true, "turn once": false} {
		r := newRig(t, node.Options{})
		long, more := r.Enter(300*ms, 1), r.Enter(1750*ms, 7) // a batch of 7 is one call in flight
		for i := range 200 {
			if at := time.Duration(i) * time.Second; each && at > 2*time.Second {
				r.Seal(at)
			}
		}
		long.Exit(200*time.Second+250*ms, false, 0)
		more.Exit(200*time.Second+500*ms, false, 0)
		r.Seal(300 * time.Second)
		for i := range int64(300) {
			want := 2 * time.Second
			switch {
			case i == 0:
				want = 700*ms - rest(300*ms)
			case i == 1:
				want = 1250*ms - rest(1750*ms)
			case i == 200:
				want = 750*ms + rest(300*ms) + rest(1750*ms)
			case i > 200:
				want = 0
			}
			if got := r.second(t, i).InFlightTime; got != want {
				t.Errorf("%s: calls spent %v in second %d, want %v", name, got, i, want)
			}
		}
		if got := total(r, 300*time.Second); got != 199950*ms+198750*ms {
			t.Errorf("%s: calls spent %v", name, got)
		}
	}
}

// A call that enters without a lock checks the end mark and then adds itself to the call word. If the bucket turns
// between these two steps, the call counts in the next bucket. Its call-seconds begin at its stamp anyway.
func TestTrapATurnWhileACallEnters(t *testing.T) {
	rounds := 20_000
	if testing.Short() {
		rounds = 2_000
	}
	r := newRig(t, node.Options{})
	r.Grow()
	const writers = 3
	var calls [writers]node.Call
	var late int64
	for i := range rounds {
		begin := time.Duration(3*i) * time.Second
		a, b, c := begin+999*ms+123, begin+time.Second, begin+2500*ms
		r.Seal(begin)
		r.at(b) // move the clock to the boundary; this does not turn the statistic
		var wg sync.WaitGroup
		var ready atomic.Int32
		for w := range writers {
			wg.Go(func() {
				for ready.Add(1); ready.Load() <= writers; {
					runtime.Gosched()
				}
				calls[w] = r.Statistic.Enter(leap.Reading(a), 1)
			})
		}
		wg.Go(func() {
			for ready.Add(1); ready.Load() <= writers; {
				runtime.Gosched()
			}
			r.Seal(b)
		})
		wg.Wait()
		for w := range calls {
			calls[w].Exit(r.at(c), false, 0)
		}
		r.Seal(begin + 3*time.Second)
		m, next, last := r.second(t, int64(3*i)), r.second(t, int64(3*i+1)), r.second(t, int64(3*i+2))
		left := begin + time.Second - a
		before, after := time.Duration(m.Pass), time.Duration(next.Pass)
		if m.InFlightTime != before*(left-rest(a)) ||
			next.InFlightTime != before*time.Second+after*(time.Second+left-rest(a)) ||
			last.InFlightTime != writers*(500*ms+rest(a)) || before+after != writers {
			t.Fatalf("%d calls entered before a turn and %d after it:\n%+v\n%+v\n%+v", before, after, m, next, last)
		}
		late += next.Pass
	}
	t.Logf("%d of %d calls counted in the next bucket", late, writers*rounds)
}

// A slewed second is up to 1 % shorter or longer. The call-seconds in its record are the call-seconds of its real
// length.
func TestTrapSlewedSeconds(t *testing.T) {
	for _, off := range []time.Duration{-700 * ms, 700 * ms} {
		r := newRig(t, node.Options{})
		long := r.Enter(0, 1)
		r.wall = off
		var h time.Duration // call-seconds of the short calls so far
		for at := time.Duration(0); at < 20*time.Second; at += 2_900_017 {
			r.call(at, 1700*time.Microsecond, false)
			h += 1700 * time.Microsecond
		}
		r.Seal(22 * time.Second)
		for i := int64(1); i < 20; i++ {
			m, ok := r.Second(r.zero + i)
			if !ok {
				t.Fatalf("second %d cannot be read", i)
			}
			// The long call is always in flight. A call of 1.7 ms begins every 2.9 ms, so on average 1.7/2.9 = 0.5862
			// short calls are in flight. The long call and the short calls together spend 1.5862 call-seconds in a
			// second. A slewed second is 1 % shorter or longer, and has 1 % fewer or more call-seconds.
			want := 1.5862 * (1 - 0.01*float64(off)/float64(700*ms))
			if got := m.InFlightAvg(); i < 19 && (got < want-0.001 || got > want+0.001) {
				t.Errorf("off %v: %v in flight in second %d", off, got, i)
			}
		}
		long.Exit(22*time.Second, false, 0)
		r.Seal(24 * time.Second)
		last := r.line.At(r.at(24 * time.Second)).Index
		sum := spent(r.view, r.zero, last)
		if sum != h+22*time.Second {
			t.Errorf("off %v: calls spent %v, want %v and %v", off, sum, h, 22*time.Second)
		}
		if want := r.Snapshot(24*time.Second, nil).InFlightSeconds; want != sum.Seconds() {
			t.Errorf("off %v: seconds add up to %v, and the total is %v", off, sum, want)
		}
	}
}

// A call may be backdated, resumed, borrowed, or entered with a stamp outside of the open bucket. The call word then
// does not contain the stamp that the exit uses for its correction. After the exit, the call-seconds must be exact
// anyway.
func TestTrapBackdatedResumedAndBorrowed(t *testing.T) {
	const odd = 12345 // not a multiple of a tick
	for name, tc := range map[string]struct {
		exit func(r *rig) (exit func(leap.Reading, bool, node.Code) int64)
		took time.Duration
	}{
		"backdated": {func(r *rig) func(leap.Reading, bool, node.Code) int64 {
			c := r.Enter(400*ms+odd, 1)
			c.Backdate(leap.Reading(100*ms + 77))
			c.Backdate(leap.Reading(50*ms + 991))
			return c.Call.Exit
		}, 5*time.Second - 400*ms - odd},
		"resumed": {func(r *rig) func(leap.Reading, bool, node.Code) int64 {
			c := r.Resume(400*ms+odd, 1)
			return c.Call.Exit
		}, 5*time.Second - 400*ms - odd},
		"borrowed": {func(r *rig) func(leap.Reading, bool, node.Code) int64 {
			l, _ := r.Occupy(400*ms, time.Duration(r.zero)*time.Second+500*ms, 3)
			c, ok := l.Call(r.at(600*ms), leap.Reading(400*ms+odd))
			if !ok {
				t.Fatal("the borrowed call has not passed")
			}
			return c.Exit
		}, 4500 * ms},
		"from long ago": {func(r *rig) func(leap.Reading, bool, node.Code) int64 {
			r.Seal(3 * time.Second)
			c := r.Enter(odd, 1)
			return c.Call.Exit
		}, 5*time.Second - odd},
		"to come": {func(r *rig) func(leap.Reading, bool, node.Code) int64 {
			c := r.Statistic.Enter(leap.Reading(3*time.Second+odd), 1)
			return c.Exit
		}, 4500 * ms},
	} {
		r := newRig(t, node.Options{})
		exit := tc.exit(r)
		exit(r.at(5*time.Second), false, 0)
		r.Seal(6 * time.Second)
		sum := spent(r.view, r.zero, r.zero+6)
		if got := r.Snapshot(6*time.Second, nil).InFlightSeconds; sum != tc.took || got != tc.took.Seconds() {
			t.Errorf("%s: spent %v, in all %v s, want %v", name, sum, got, tc.took)
		}
	}
}

// If the stamp of an exit is before the stamp of the entry, the call spends no time, and the call-seconds of other
// calls stay the same. An exit may also have a stamp in a second that was sealed while the call was in flight. The
// sealed second has then counted the call after its exit stamp. The exit subtracts this time from the open second.
func TestTrapAnExitBeforeItsEntry(t *testing.T) {
	for name, tc := range map[string]struct {
		calls func(r *rig)
		want  [2]time.Duration
	}{
		"in the same second": {func(r *rig) { r.call(300*ms, -200*ms, false) }, [2]time.Duration{}},
		"in the second before": {func(r *rig) {
			r.Seal(time.Second)
			r.call(1300*ms, -500*ms, false)
		}, [2]time.Duration{}},
		"after a turn": {func(r *rig) {
			c := r.Enter(300*ms, 1)
			r.Seal(1500 * ms)
			c.Exit(400*ms, false, 0)
		}, [2]time.Duration{700*ms - rest(300*ms), -600*ms + rest(300*ms)}},
	} {
		r := newRig(t, node.Options{})
		r.pass(0, 1)
		tc.calls(r)
		r.Seal(3 * time.Second)
		for i, want := range tc.want {
			if got := r.second(t, int64(i)).InFlightTime - time.Second; got != want {
				t.Errorf("%s: calls spent %v in second %d, want %v", name, got, i, want)
			}
		}
	}
}

// The call-seconds that snapshots report grow while a call is in flight, and never fall. If a call exits with a stamp
// before the reading of an earlier snapshot, the exit reduces the true total. The reported total then stays constant
// until the true total exceeds it. Apart from this case, the reported total equals the sum over the seconds.
func TestCallSecondsNeverFall(t *testing.T) {
	r := newRig(t, node.Options{})
	long := r.Enter(200*ms, 1)
	for at := 200 * ms; at < 5*time.Second; at += 50 * ms {
		if got := total(r, at); got != at-200*ms && got != at-200*ms-rest(200*ms).Round(time.Microsecond) {
			t.Fatalf("at %v calls spent %v", at, got)
		}
	}
	reported := total(r, 5200*ms)
	long.Exit(5100*ms, false, 0)
	if got := total(r, 5200*ms); got < reported || got > reported+4*time.Microsecond {
		t.Errorf("after an exit with an older stamp: %v after %v", got, reported)
	}
	r.Seal(6 * time.Second)
	if got := r.second(t, 5).InFlightTime; got != 100*ms+rest(200*ms) {
		t.Errorf("second 5 has %v", got)
	}
	other := r.Enter(6100*ms+1, 1) // the stamp is not a multiple of a tick
	before := r.Snapshot(6100*ms+1, nil).InFlightSeconds
	if before < r.Snapshot(6*time.Second, nil).InFlightSeconds {
		t.Error("a call that has just entered lowers the total")
	}
	other.Exit(6100*ms+1, false, 0)
	if got := total(r, 7*time.Second); got != reported {
		t.Errorf("calls spent %v, and had spent %v", got, reported)
	}
	r.call(8*time.Second, time.Second, false)
	if got := total(r, 9*time.Second); got != 5900*ms {
		t.Errorf("calls spent %v", got)
	}
}

// A view keeps the call-seconds of its removed leaves.
func TestCallSecondsKeepRetiredLeaves(t *testing.T) {
	r := newRig(t, node.Options{})
	r.call(0, 1500*ms, false)
	if !r.Retire(100*time.Second, r.zero+40) {
		t.Fatal("not retired")
	}
	r.view.Remove(r.zero + 40)
	for _, v := range []*node.View{r.view, r.view.Clone()} {
		if got := v.Snapshot(r.at(100*time.Second), nil); got.InFlightSeconds != 1.5 || !v.Empty() {
			t.Errorf("calls spent %v", got.InFlightSeconds)
		}
	}
}

// Little's law holds to the nanosecond under stress: during the calls, buckets turn and snapshots are taken as fast as
// possible, goroutines lose their processor at any point, and seconds are slewed.
func TestNothingIsLostAcrossTurnsOfCallSeconds(t *testing.T) {
	const writers = 8
	turns := int64(300)
	if testing.Short() {
		turns = 30
	}
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
	var took [writers]time.Duration
	for w := range writers {
		wg.Go(func() {
			for i := w; !stop.Load(); i++ {
				now := line.Now()
				var c node.Call
				switch {
				case i%16 == 2:
					c = s.Resume(now, 2)
				case i%16 == 5:
					s.Hold(now).Record(time.Hour, 1, false, 0) // Record counts a call that was never in flight
					continue
				default:
					c = s.Enter(now, 1+int64(i%7/6))
				}
				if i%16 == 3 {
					c.Backdate(now.Add(-time.Duration(i)))
				}
				if i%32 == 0 {
					runtime.Gosched()
				}
				end := line.Now()
				c.Exit(end, false, 0)
				took[w] += end.Sub(now)
			}
		})
	}
	first := line.At(0).Index
	next, sum, reported := first, time.Duration(0), 0.0
	read := func() {
		now := line.Now()
		s.Seal(now)
		open := line.At(now).Index
		for ; next < open; next++ {
			m, ok := v.Second(next)
			if !ok || m.InFlightTime < 0 {
				t.Fatalf("second %d: %+v (%t)", next-first, m, ok)
			}
			sum += m.InFlightTime
		}
		if got := v.Snapshot(now, nil).InFlightSeconds; got < reported {
			t.Fatalf("calls spent %v after %v", got, reported)
		} else {
			reported = got
		}
	}
	begin := time.Now()
	for next < first+turns || time.Since(begin) < *hammer {
		switch next % 64 {
		case 20:
			stepped.Add(int64(time.Hour))
		case 40:
			stepped.Add(int64(300*ms) * (next/64%2*2 - 1)) // the timeline slews by 1 %, so it corrects 300 ms in 30 s
		}
		for range 7 {
			clock.Add(int64(43*ms) + 1001) // successive readings have different positions within a tick
			runtime.Gosched()
			if next%8 == 0 {
				read()
			}
		}
		read()
	}
	stop.Store(true)
	wg.Wait()
	const last = 20 * time.Minute // long enough for the true total to exceed every total reported before
	c := s.Enter(line.Now(), 1)
	for range last / time.Second {
		clock.Add(int64(time.Second))
		read()
	}
	c.Exit(line.Now(), false, 0)
	clock.Add(int64(2 * time.Second))
	read()
	want := last
	for _, d := range took {
		want += d
	}
	if want != sum || reported != float64(want/time.Second)+(want%time.Second).Seconds() {
		t.Errorf("calls took %v; seconds add up to %v, %v off, and the total is %v", want, sum, sum-want, reported)
	}
	t.Logf("%v in %d seconds", want, next-first)
}
