package collector_test

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/leap"
	"github.com/windowstat/windowstat/node"
)

// A kept handle or View belongs to a name. If the resource of the name is retired and the name is used again, the
// handle and the View read the counts of the new resource.
func TestHandlesAndViewsFollowTheirNames(t *testing.T) {
	c, f := clocked(t, collector.Options{RetireAfter: 2 * time.Minute, Windows: node.Options{History: time.Minute}})
	use := func(n int) {
		for range n {
			_, e, err := c.Enter(t.Context(), "a", collector.Origin("o"), collector.Entrance("x"))
			if err != nil {
				t.Fatal(err)
			}
			f.add(ms)
			e.ExitTrace(nil, collector.Code{}, "t")
		}
	}
	// The resource "stays" is never retired. A View that reads a wrong resource would have the numbers of "stays".
	stay := func() {
		_, e, _ := c.Enter(t.Context(), "stays", collector.Origin("s"))
		e.Exit(nil)
		f.add(time.Second)
		c.Seal()
	}
	handle := c.Resource("a")
	early := handle.Origin("o") // created before the first call of the origin
	if (early.Snapshot(nil) != node.Snapshot{}) || early.Node() != nil {
		t.Errorf("an origin that has not called has %+v", early.Snapshot(nil))
	}
	use(3)
	kept := map[string]collector.View{"view": handle.View(), "origin": handle.Origin("o"), "early origin": early}
	for name, v := range handle.Origins() {
		kept["iterated origin "+name] = v
	}
	for name, v := range handle.Entrances() {
		kept["entrance "+name] = v
	}
	for _, e := range c.Tree().Children() {
		if e.Name() == "x" {
			kept["tree x"], kept["tree x a"] = e.View(), e.Children()[0].View()
		}
	}
	if len(kept) != 7 {
		t.Fatalf("%d views: %v", len(kept), kept)
	}
	check := func(when string, n int64, last int64) {
		t.Helper()
		for name, v := range kept {
			if got := v.Snapshot(nil); got.Total.Pass != n || v.Minute().Pass != last || v.InFlight() != 0 {
				t.Errorf(
					"%s: %s has %d passes, %d of them in the last minute; want %d and %d",
					when,
					name,
					got.Total.Pass,
					v.Minute().Pass,
					n,
					last,
				)
			}
		}
		if got := handle.Snapshot(nil).Total.Pass; got != n {
			t.Errorf("%s: the handle has %d passes, want %d", when, got, n)
		}
	}
	check("in use", 3, 3)
	for range 200 {
		stay()
	}
	if h := c.Health(); h.Resources != 1 || h.Entrances != 1 {
		t.Fatalf("not retired: %+v", h)
	}
	check("retired", 0, 0)
	use(2)
	check("used again", 2, 2)
	f.add(time.Second)
	for name, v := range kept {
		if got := v.Last(1); len(got) != 1 || got[0].Pass != 2 {
			t.Errorf("%s: the last second is %+v", name, got)
		}
	}
	if got := handle.Exemplars(); len(got) != 1 || f.now().Sub(got[0].At) > 2*time.Second {
		t.Errorf("the handle has the exemplars %v", got)
	}
	for name, v := range c.Resource("a").Origins() { // these views are created after the name was used again
		kept["later origin "+name] = v
	}
	for range 200 {
		stay()
	}
	check("retired again", 0, 0)
	use(1)
	check("used a third time", 1, 1)
}

// All Views of one name read the same numbers, no matter when each View was created. A View may be created before the
// first call, before the first call of another origin, before a retirement of the name, or while the name is not in
// use.
func TestViewsOfANameReadTheSame(t *testing.T) {
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 1))
		c, f := clocked(
			t,
			collector.Options{
				Given:       []string{"given"},
				RetireAfter: 3 * time.Minute,
				Windows:     node.Options{History: time.Minute},
			},
		)
		views := map[string][]collector.View{}
		for range 40 {
			name, origin := []string{"a", "given"}[random.IntN(2)], []string{"", "x"}[random.IntN(2)]
			switch random.IntN(4) {
			case 0, 1:
				_, e, _ := c.Enter(t.Context(), name, collector.Origin(origin))
				e.Exit(nil)
			case 2:
				f.add([]time.Duration{time.Second, 4 * time.Minute}[random.IntN(2)])
				c.Seal()
			case 3:
				r := c.Resource(name)
				views[name] = append(views[name], r.View())
				views[name+" from "+origin] = append(views[name+" from "+origin], r.Origin(origin))
			}
			for what, list := range views {
				for _, v := range list {
					if got, first := v.Snapshot(nil).Total.Pass, list[0].Snapshot(nil).Total.Pass; got != first {
						t.Fatalf("seed %d: views of %s read %d and %d", seed, what, first, got)
					}
				}
			}
		}
	}
}

// Goroutines read kept Views, while the name "a" is used and retired 200 times. In each use, one origin makes three
// calls. The View of the resource then has only these three calls. The same holds for the View of the origin, except
// that the test has no View of the origin "p". In the end, the View of all inbound calls has the calls of all uses.
func TestKeptViewsWhileNamesComeAndGo(t *testing.T) {
	c, f := clocked(t, collector.Options{RetireAfter: 62 * time.Second, Windows: node.Options{History: node.Minute}})
	r := c.Resource("a")
	views := []collector.View{r.View(), r.Origin("o"), r.Origin(""), c.Inbound(), c.Tree().View()}
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			var h node.Histogram
			for !stop.Load() {
				for _, v := range views {
					if s := v.Snapshot(&h); s.InFlight < 0 || h.Count() != s.Total.Complete {
						t.Errorf("%+v, histogram of %d", s, h.Count())
					}
					v.Last(3)
					v.Window()
				}
				for _, x := range c.Seal().Resources {
					x.View().Node().InFlight()
					for _, v := range x.Origins() {
						v.Node().InFlight()
					}
					for _, v := range x.Entrances() {
						v.Node().InFlight()
					}
				}
				runtime.Gosched()
			}
		})
	}
	lives := c.Health().Retired
	for i := range 200 {
		for range 3 {
			_, e, _ := c.Enter(t.Context(), "a", collector.Origin([]string{"", "o", "p"}[i%3]), collector.Inbound())
			e.Exit(nil)
		}
		if got := views[0].Window().Pass; got != 3 {
			t.Fatalf("round %d: the resource has %d passes", i, got)
		}
		if i%3 < 2 {
			if got := views[2-i%3].Window().Pass; got != 3 {
				t.Fatalf("round %d: the origin has %d passes", i, got)
			}
		}
		f.add(80 * time.Second) // the name becomes idle; a sweep is due every 10 s
		// Seal sweeps nothing while another goroutine sweeps, so repeat Seal until the name is retired.
		for begin := time.Now(); c.Health().Retired <= lives; {
			if c.Seal(); time.Since(begin) > time.Minute {
				t.Fatalf("round %d: the name is not retired", i)
			}
			runtime.Gosched()
		}
		lives = c.Health().Retired
	}
	stop.Store(true)
	wg.Wait()
	if got := views[3].Snapshot(nil).Total.Pass; got != 600 {
		t.Errorf("%d inbound calls, want 600", got)
	}
}

// The View of the empty origin has only the calls without an origin, even if the View was created before the first call
// of another origin.
func TestEmptyOriginExcludesOtherOrigins(t *testing.T) {
	c, _ := clocked(t, collector.Options{})
	call := func(name, origin string) {
		_, e, _ := c.Enter(t.Context(), name, collector.Origin(origin))
		e.Exit(nil)
	}
	kept := c.Resource("a").Origin("")
	call("a", "")
	call("a", "o")
	call("a", "")
	if got := kept.Snapshot(nil).Total.Pass; got != 2 {
		t.Errorf("%d calls without an origin, want 2", got)
	}
	unused := c.Resource("b").Origin("")
	call("b", "o")
	if got := unused.Snapshot(nil).Total; got.Pass != 0 || unused.Node() == nil {
		t.Errorf("%+v without an origin, want none", got)
	}
	call("b", "")
	if got := unused.Snapshot(nil).Total.Pass; got != 1 {
		t.Errorf("%d calls without an origin, want 1", got)
	}
}

func TestZeroViewsAreIdle(t *testing.T) {
	var r *collector.Resource
	var c *collector.Collector
	from, to := epoch.Add(-time.Hour), epoch.Add(100*365*24*time.Hour)
	for name, v := range map[string]collector.View{
		"zero": {}, "resource": r.View(), "origin": r.Origin("o"), "inbound": c.Inbound(),
		"other of a tree": new(collector.TreeNode).View(),
	} {
		var h node.Histogram
		if (v.Window() != node.Window{}) || (v.Minute() != node.Window{}) || v.PassQPS() != 0 || v.InFlight() != 0 ||
			(v.Snapshot(&h) != node.Snapshot{}) || v.Seconds(from, to) != nil || v.Last(10) != nil || v.Node() != nil ||
			!v.Histogram(from, to, &h) || h.Count() != 0 {
			t.Errorf("%s is not idle", name)
		}
	}
	for name := range r.Origins() {
		t.Errorf("origin %q", name)
	}
	for name := range r.Entrances() {
		t.Errorf("entrance %q", name)
	}
}

// Seconds and Histogram select seconds by the wall clock, even if the wall clock has stepped.
func TestSecondsByTheWallClock(t *testing.T) {
	var mono, wall time.Duration // time on the monotonic clock and on the wall clock since epoch
	line := leap.NewTimeline(leap.Clock{
		Mono: func() time.Duration { return mono },
		Wall: func() time.Time { return epoch.Add(wall) },
	})
	c, err := collector.NewOn(line, collector.Options{Windows: node.Options{History: 5 * time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	r := c.Resource("a")
	pass := map[int64]int64{} // number of passes by second; keys are seconds of the wall clock since epoch
	for i := range int64(100) {
		switch i {
		case 10:
			wall += 30 * time.Second // the wall clock skips the seconds 10 to 39
		case 30:
			wall += time.Hour // the wall clock skips the seconds 60 to 3659
		}
		for range i + 1 {
			e := r.Enter()
			e.Exit(nil)
		}
		pass[int64(wall/time.Second)] = i + 1
		mono, wall = mono+time.Second, wall+time.Second
	}
	v := r.View()
	at := func(second int64) time.Time { return epoch.Add(time.Duration(second) * time.Second) }
	last := int64(wall/time.Second) - 1
	for _, span := range [][2]int64{
		{0, last + 1},
		{-1000, 1 << 30},
		{0, 10},
		{5, 45}, // the wall clock steps within this interval
		{10, 40},
		{12, 13}, // a second that the step of the wall clock has skipped
		{58, 3662},
		{3671, 3690},
		{last, last + 1},
		{last + 1, last + 2}, // only the open second
		{1 << 20, 1 << 21},   // an interval in the future
		{-50, -3},            // an interval before the first second
		{20, 5},              // an interval that ends before it begins
	} {
		var want []int64
		for s := max(span[0], 0); s < min(span[1], last+1); s++ {
			if n, ok := pass[s]; ok {
				want = append(want, s, n)
			}
		}
		// An interval selects the seconds that begin in it, and the intervals of the table consist of whole seconds. An
		// interval that begins and ends less than a second earlier therefore selects the same seconds.
		for _, early := range []time.Duration{0, 400 * ms, time.Second - 1} {
			var got []int64
			var sum int64
			from, to := at(span[0]).Add(-early), at(span[1]).Add(-early)
			for _, m := range v.Seconds(from, to) {
				got = append(got, int64(m.Start.Sub(epoch)/time.Second), m.Pass)
				sum += m.Complete
			}
			if !slices.Equal(got, want) {
				t.Errorf("seconds from %d to %d: %v, want %v", span[0], span[1], got, want)
			}
			var h node.Histogram
			whole := v.Histogram(from, to, &h)
			recent := len(want) == 0 || want[0] >= 3670 // the last 60 histograms are kept, from second 3670 on
			if recent && h.Count() != sum || whole != (recent && span[1] <= last+1 || span[0] > span[1]) {
				t.Errorf("histogram from %d to %d: %d (%t), want %d", span[0], span[1], h.Count(), whole, sum)
			}
		}
	}
	for _, n := range []int{-1, 0, 1, 5, 100, 101, 1 << 40} {
		got := v.Last(n)
		if want := min(max(n, 0), 100); len(got) != want || want > 0 && got[want-1].Pass != 100 {
			t.Errorf("Last(%d) returns %d seconds", n, len(got))
		}
	}
}
