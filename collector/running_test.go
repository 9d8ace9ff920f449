package collector_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// A call hangs, while other calls of the same resource end quickly. The hanging call has no response time yet, but
// Oldest lists it. The sum of the ages of all calls in flight includes the age of the hanging call, and the metric
// in_flight_oldest_seconds reports this age.
func TestOldestListsHangingCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCollector(t, collector.Options{})
		ctx, request, _ := c.Enter(
			t.Context(),
			"GET /",
			collector.Inbound(),
			collector.Origin("web"),
			collector.Entrance("http"),
			collector.TraceID("4bf92f35"),
		)
		time.Sleep(2 * time.Second)
		_, hung, _ := c.Enter(ctx, "db")
		for range 58 {
			time.Sleep(time.Second)
			_, e, _ := c.Enter(t.Context(), "db")
			e.Exit(nil)
		}
		_, fresh, _ := c.Resource("db").EnterContext(t.Context())
		byHandle := c.Resource("db").Enter() // Oldest does not list this call, because Resource.Enter takes no context
		time.Sleep(time.Second)
		want := []collector.Running{
			{"GET /", "web", "http", "4bf92f35", 61 * time.Second},
			{"db", "web", "http", "4bf92f35", 59 * time.Second},
			{"db", "", collector.DefaultEntrance, "", time.Second},
		}
		for n := range 5 {
			if got := c.Oldest(n); !slices.Equal(got, want[:min(n, 3)]) {
				t.Errorf("the %d oldest are %v", n, got)
			}
		}
		if s := c.Resource("db").View().Snapshot(nil); s.InFlight != 3 || s.InFlightElapsed < 61-3*4.1e-6 ||
			s.InFlightElapsed > 61 {
			t.Errorf("%d in flight, for %v s together", s.InFlight, s.InFlightElapsed)
		}
		if got := oldest(c); got["GET /"] != 61 || got["db"] != 59 || len(got) != 2 {
			t.Errorf("the oldest are %v", got)
		}
		hung.Exit(nil)
		fresh.End(nil)
		fresh.End(nil)
		if got := c.Oldest(10); len(got) != 1 || got[0] != want[0] {
			t.Errorf("after the hanging call has ended, Oldest lists %v", got)
		}
		request.ExitCode(errors.New("late"), collector.HTTPStatus(504))
		byHandle.Exit(nil)
		if got := c.Oldest(10); len(got) > 0 || len(oldest(c)) > 0 {
			t.Errorf("no call runs, but Oldest lists %v", got)
		}
	})
}

// oldest returns the values of the metric in_flight_oldest_seconds by resource.
func oldest(c *collector.Collector) map[string]float64 {
	all := map[string]float64{}
	for _, m := range c.Metrics() {
		if m.Name == "in_flight_oldest_seconds" {
			m.Each(func(v float64, labels ...string) { all[labels[0]] = v })
		}
	}
	return all
}

// The resource Other records a call, but a limit counts the call under the name of the call. When the call has ended,
// the limit no longer counts it, and Oldest no longer lists it.
func TestCallsThatRunUnderLimits(t *testing.T) {
	c := newCollector(t, collector.Options{MaxResources: 1})
	c.Resource("taken").Block("")
	if err := c.SetLimits([]collector.Limit{{Resource: "GET *", Grade: collector.Concurrency, Count: 1}}); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		ctx, e, err := c.Enter(t.Context(), "GET /a")
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := c.Enter(ctx, "GET /a"); !errors.Is(err, collector.ErrBlocked) {
			t.Errorf("a second call: %v", err)
		}
		if got := c.Oldest(10); len(got) != 1 || got[0].Resource != collector.Other {
			t.Errorf("one call runs, but Oldest lists %v", got)
		}
		e.Exit(nil)
		e.Exit(nil)
		if got := c.Oldest(10); len(got) != 0 {
			t.Errorf("no call runs, but Oldest lists %v", got)
		}
	}
}

// Oldest lists only the calls of its Collector, even if they are nested below a call of another Collector. A nil
// Collector lists no calls.
func TestCallsOfTwoCollectors(t *testing.T) {
	a, b := newCollector(t, collector.Options{}), newCollector(t, collector.Options{})
	ctx, x, _ := a.Enter(t.Context(), "a")
	_, y, _ := b.Enter(ctx, "b")
	defer x.Exit(nil)
	defer y.Exit(nil)
	var none *collector.Collector
	for c, want := range map[*collector.Collector]string{a: "a", b: "b", none: ""} {
		got := ""
		for _, x := range c.Oldest(10) {
			got += x.Resource
		}
		if got != want {
			t.Errorf("Oldest lists %q, want %q", got, want)
		}
	}
}

// Each call enters with a context that holds a request. After the call has ended, neither the list of running calls nor
// the parent context t.Context() keeps the request in memory.
func TestEndedCallsAreNotRetained(t *testing.T) {
	c := newCollector(t, collector.Options{})
	const calls = 1000
	var freed atomic.Int64
	for range calls {
		request := new([1 << 10]byte)
		runtime.AddCleanup(request, func(int) { freed.Add(1) }, 0)
		_, e, _ := c.Enter(context.WithValue(t.Context(), requestKey{}, request), "load")
		e.Exit(nil)
	}
	for i := 0; freed.Load() < calls && i < 100; i++ {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	if n := freed.Load(); n < calls {
		t.Errorf("%d of %d requests are still in memory", calls-n, calls)
	}
}

type requestKey struct{}

// There are far more concurrent calls than Collector.running has slots. Oldest lists at least a quarter of the calls.
// After all calls have ended, it lists none.
func TestMoreCallsThanSlots(t *testing.T) {
	c := newCollector(t, collector.Options{})
	all := make([]collector.Entry, 100_000)
	for i := range all {
		_, all[i], _ = c.Enter(t.Context(), "load")
	}
	count := func() int { return len(c.Resource("load").Oldest(len(all))) }
	if n := count(); n < 25_000 || n > len(all) {
		t.Errorf("%d calls are listed", n)
	}
	for i := range all {
		all[i].Exit(nil)
	}
	if n := count(); n != 0 || c.Resource("load").InFlight() != 0 {
		t.Errorf("%d calls are listed after their end", n)
	}
}

// Short-lived goroutines make two calls each, while other goroutines list the running calls. In each listed call, the
// trace ID and the resource belong together, and the age is plausible. After all calls have ended, the list is empty.
func TestRunningUnderStress(t *testing.T) {
	c := newCollector(t, collector.Options{})
	var over atomic.Bool
	var readers, writers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			for !over.Load() {
				for _, x := range c.Oldest(5) {
					if !strings.HasPrefix(x.Resource, "load ") || x.Age < 0 || x.Age > time.Hour ||
						x.TraceID != x.Resource[5:] {
						t.Errorf("%+v is listed", x)
					}
				}
				oldest(c)
			}
		})
	}
	for range 200 {
		for w := range 20 {
			writers.Go(func() {
				id := fmt.Sprint(w % 7)
				ctx, e, _ := c.Enter(t.Context(), "load "+id, collector.TraceID(id))
				_, inner, _ := c.Enter(ctx, "load "+id)
				runtime.Gosched()
				go inner.Exit(nil)
				e.Exit(nil)
			})
		}
		writers.Wait()
	}
	for len(c.Oldest(1)) > 0 {
		runtime.Gosched() // wait for the goroutines that end the inner calls
	}
	over.Store(true)
	readers.Wait()
}

// Invalid trace IDs are ignored. If the Value method of a context panics, the call has no trace ID.
func TestTraceIDs(t *testing.T) {
	c := newCollector(t, collector.Options{})
	for id, want := range map[string]string{
		"": "", "a": "a", strings.Repeat("x", 64): strings.Repeat("x", 64),
		strings.Repeat("x", 65): "", "\xff": "",
	} {
		_, e, _ := c.Enter(t.Context(), "load", collector.TraceID(id))
		if got := c.Oldest(1); len(got) != 1 || got[0].TraceID != want {
			t.Errorf("trace %q: %+v", id, got)
		}
		e.Exit(nil)
	}
	ctx, outer, _ := c.Enter(t.Context(), "load", collector.TraceID("outer"))
	ctx, inner, _ := c.Enter(ctx, "load", collector.TraceID("inner"))
	_, last, _ := c.Enter(hostile{ctx}, "last")
	defer outer.Exit(nil)
	defer inner.Exit(nil)
	defer last.Exit(nil)
	if got := c.Resource("last").Oldest(10); len(got) != 1 || got[0].TraceID != "" {
		t.Errorf("%+v", got)
	}
	if got := c.Oldest(2)[1].TraceID; got != "inner" && got != "outer" {
		t.Errorf("trace %q", got)
	}
}

// hostile is a context. Its Value method panics if its argument is the key of trace IDs.
type hostile struct{ context.Context }

func (h hostile) Value(k any) any {
	if fmt.Sprintf("%T", k) == "collector.traceKey" {
		panic("no")
	}
	return h.Context.Value(k)
}
