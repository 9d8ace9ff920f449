package collector_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// busy makes one call of a name. For the length of the history, the call protects the resource of this name from
// eviction.
func busy(t *testing.T, c *collector.Collector, name string, opts ...collector.CallOption) {
	t.Helper()
	_, e, err := c.Enter(t.Context(), name, opts...)
	if err != nil {
		t.Fatal(err)
	}
	e.Exit(nil)
}

func names(c *collector.Collector) (list []string) {
	for _, r := range c.Seal().Resources {
		list = append(list, r.Name())
	}
	return list
}

// Regression: 1,100 made-up paths filled the table of resources. The name "checkout" got no slot, so its calls were
// recorded for _other for an hour.
//
// A new name evicts the longest-idle resource if this resource has been idle for longer than the history. A resource
// with a call within the history is never evicted.
func TestTheLongestIdleIsEvicted(t *testing.T) {
	for _, retire := range []time.Duration{0, -1} {
		c, f := clocked(
			t,
			collector.Options{MaxResources: 4, RetireAfter: retire, Windows: node.Options{History: time.Minute}},
		)
		flying := c.Resource("flying").Enter()
		for _, name := range []string{"first", "second", "third"} {
			f.add(time.Second)
			busy(t, c, name, collector.FromRequest())
		}
		busy(t, c, "first", collector.FromRequest())
		f.add(time.Second)
		busy(t, c, "first", collector.FromRequest())
		f.add(59 * time.Second)
		c.Seal()
		busy(t, c, "new", collector.FromRequest())
		if got := fmt.Sprint(names(c)); got != "[flying first second third _other]" {
			t.Fatalf("%s: a resource was evicted too early", got)
		}
		// Each of the first three steps evicts the resource that has been idle for the longest time. In the last step,
		// no resource has been idle for longer than the history, so the call is recorded for _other.
		for _, step := range []struct{ name, want string }{
			{"new", "[flying first third _other new]"},
			{"newer", "[flying first _other new newer]"},
			{"newest", "[flying _other new newer newest]"},
			{"one more", "[flying _other new newer newest]"},
		} {
			f.add(10 * time.Second)
			c.Seal()
			busy(t, c, step.name, collector.FromRequest())
			if got := fmt.Sprint(names(c)); got != step.want {
				t.Fatalf("%s: got %s, want %s", step.name, got, step.want)
			}
		}
		flying.Exit(nil)
	}
}

// A resource is evicted only after its last calls have left the history. An eviction therefore removes no call from the
// seconds in the history. The test reads these seconds in the view of the process.
func TestEvictionRemovesNoCallFromHistory(t *testing.T) {
	c, f := clocked(t, collector.Options{MaxResources: 2, Windows: node.Options{History: time.Minute}})
	busy(t, c, "old", collector.Inbound(), collector.FromRequest())
	began := f.now()
	root, passes := c.Tree().View(), int64(1)
	for i := range 100 {
		f.add(time.Second)
		c.Seal()
		busy(t, c, "steady", collector.Inbound())
		busy(t, c, fmt.Sprint("new ", i/90), collector.Inbound(), collector.FromRequest())
		passes += 2
		readable := 0
		for _, m := range root.Last(59) {
			if readable++; !m.Start.After(began) && m.Pass == 0 {
				t.Fatalf("second %v has lost its call", m.Start)
			}
		}
		if want := min(i+1, 59); readable != want {
			t.Fatalf("second %d: %d seconds of the root can be read, want %d", i, readable, want)
		}
	}
	if s := c.Inbound().Snapshot(nil).Total; s.Pass != passes || s.Complete != passes {
		t.Errorf("%+v, want %d", s, passes)
	}
	if c.Health().Retired == 0 {
		t.Error("no resource was evicted")
	}
}

// A new earned name never evicts a given name, however long the given name has been idle. A new given name evicts an
// idle earned name. If no earned name is idle, the new given name evicts an idle given name.
func TestEarnedNamesEvictNoGivenName(t *testing.T) {
	c, f := clocked(t, collector.Options{Given: []string{"route"}, MaxResources: 3, RetireAfter: 24 * time.Hour})
	busy(t, c, "given")
	busy(t, c, "promoted", collector.FromRequest())
	c.Resource("promoted")
	f.add(time.Second)
	busy(t, c, "earned", collector.FromRequest())
	f.add(time.Hour)
	c.Seal()
	for i := range 3 {
		busy(t, c, fmt.Sprint("/", i), collector.FromRequest())
	}
	if got := fmt.Sprint(names(c)); got != "[route given promoted /0 _other]" {
		t.Errorf("%s: names from requests evicted a given name", got)
	}
	f.add(time.Hour)
	c.Seal()
	for i := range 4 {
		busy(t, c, fmt.Sprint("handle ", i))
	}
	if got := fmt.Sprint(names(c)); got != "[route _other handle 0 handle 1 handle 2]" {
		t.Error(got)
	}
	f.add(100 * time.Hour)
	c.Seal()
	if got := fmt.Sprint(names(c)); got != "[route _other]" {
		t.Errorf("%s: only the name in Options.Given and _other should be left", got)
	}
}

// Names in limits and names with calls in flight are not evicted.
func TestLimitedAndBusyNamesAreNotEvicted(t *testing.T) {
	c, f := clocked(t, collector.Options{MaxResources: 2, RetireAfter: -1})
	limit(t, c, qps("login", 1))
	busy(t, c, "login", collector.FromRequest())
	_, e, _ := c.Enter(t.Context(), "stream", collector.FromRequest())
	f.add(time.Hour)
	c.Seal()
	f.add(time.Hour)
	c.Seal()
	busy(t, c, "new")
	if got := fmt.Sprint(names(c)); got != "[login stream _other]" {
		t.Error(got)
	}
	e.Exit(nil)
	if n := len(pass(c, "login", 2)); n != 1 {
		t.Errorf("%d passed", n)
	}
}

// BenchmarkEviction measures a call whose new name evicts another name. With a large table, the call should cost
// about as much as with a small table.
func BenchmarkEviction(b *testing.B) {
	for _, n := range []int{1000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c, f := clocked(b, collector.Options{MaxResources: n, RetireAfter: -1})
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%n == 0 {
					b.StopTimer()
					// Make all resources idle. Seal then starts a sweep that lists the idle resources. Before this
					// sweep, a new name gets no slot in a full table.
					f.add(time.Hour)
					c.Resource("beyond")
					f.add(time.Minute)
					c.Seal()
					b.StartTimer()
				}
				_, e, _ := c.Enter(b.Context(), fmt.Sprint("/", i), collector.FromRequest())
				e.Exit(nil)
			}
		})
	}
}
