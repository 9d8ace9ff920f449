package collector_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

const ms = time.Millisecond

var errBad = errors.New("bad")

func newCollector(t testing.TB, o collector.Options) *collector.Collector {
	t.Helper()
	c, err := collector.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// last returns the record of the last complete second of a resource.
func last(t testing.TB, c *collector.Collector, r *collector.Resource) node.MetricNode {
	t.Helper()
	m, ok := r.View().Node().Second(c.Seal().Open - 1)
	if !ok {
		t.Fatal("the last complete second cannot be read")
	}
	return m
}

func TestCallsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCollector(t, collector.Options{})
		r := c.Resource("a")
		e := r.Enter()
		time.Sleep(20 * ms)
		e.Exit(nil)
		e.Exit(errBad) // e has ended, so this Exit does nothing
		for _, err := range []error{nil, errBad} {
			got := r.Do(func() error { time.Sleep(30 * ms); return err })
			if !errors.Is(got, err) {
				t.Errorf("Do returned %v, want %v", got, err)
			}
		}
		r.Block("")
		start := time.Now().UTC().Truncate(time.Second)
		time.Sleep(time.Second)
		want := node.MetricNode{
			Start: start,
			Counts: node.Counts{
				Pass:      3,
				Block:     1,
				Complete:  3,
				Exception: 1,
				RTSum:     80 * ms,
				RTMin:     20 * ms,
				RTMax:     30 * ms,
			},
			InFlightMax: 1, InFlightMaxUpper: 1, InFlightTime: 80 * ms, PassPeak: 3,
		}
		if m := last(t, c, r); m != want {
			t.Errorf("got  %+v\nwant %+v", m, want)
		}
	})
}

// Do counts an exception if its function panics or calls runtime.Goexit. The call is then no longer in flight. A panic
// continues in the caller of Do.
func TestDoCountsPanicsAndGoexit(t *testing.T) {
	c := newCollector(t, collector.Options{})
	r := c.Resource("a")
	func() {
		defer func() {
			if v := recover(); v != "boom" {
				t.Errorf("the recovered panic is %v, want boom", v)
			}
		}()
		_ = r.Do(func() error { panic("boom") })
	}()
	var wg sync.WaitGroup
	wg.Go(func() {
		_ = r.Do(func() error { runtime.Goexit(); return nil })
	})
	wg.Wait()
	s := r.Snapshot(nil)
	if s.Total.Complete != 2 || s.Total.Exception != 2 || s.InFlight != 0 {
		t.Errorf("%+v", s)
	}
}

func TestExitFromAnotherGoroutineAndTwice(t *testing.T) {
	c := newCollector(t, collector.Options{})
	r := c.Resource("a")
	for range 1000 {
		e := r.Enter()
		var wg sync.WaitGroup
		for range 3 {
			wg.Go(func() { e.Exit(nil) })
		}
		wg.Wait()
	}
	if s := r.Snapshot(nil); s.Total.Complete != 1000 || s.InFlight != 0 {
		t.Errorf("%+v", s)
	}
}

// A nil Collector and its nil Resource record nothing. Their methods that read counts return zero values.
func TestNilCollectorRecordsNothing(t *testing.T) {
	var c *collector.Collector
	r := c.Resource("a")
	if r != nil {
		t.Fatal("a nil Collector has a resource")
	}
	e := r.Enter()
	e.Exit(errBad)
	r.Block("")
	if err := r.Do(func() error { return errBad }); !errors.Is(err, errBad) {
		t.Errorf("Do returned %v", err)
	}
	if r.View() != (collector.View{}) || r.Name() != "" || (r.Snapshot(nil) != node.Snapshot{}) ||
		r.PassQPS() != 0 || (r.Window() != node.Window{}) || (r.View().Minute() != node.Window{}) || r.InFlight() != 0 {
		t.Error("a nil Resource has something to read")
	}
	m := c.Seal()
	if m.Open != 0 || len(m.Resources) != 0 || (c.Health() != collector.Health{}) || c.Timeline() != nil {
		t.Error("a nil Collector has something to read")
	}
}

func TestNames(t *testing.T) {
	long := strings.Repeat("ü", 5000)
	for name, want := range map[string]string{
		"GET /users/{id}": "GET /users/{id}",
		"":                collector.Unnamed,
		"a|b\n\"c\"{}\\":  "a|b\n\"c\"{}\\",
		"bad\xff\xfe":     "bad\uFFFD",
		strings.Repeat("x", collector.MaxNameLength): strings.Repeat("x", collector.MaxNameLength),
	} {
		if got := collector.CleanName(name); got != want {
			t.Errorf("CleanName(%q) = %q, want %q", name, got, want)
		}
	}
	a, b := collector.CleanName(long+"a"), collector.CleanName(long+"b")
	if a == b {
		t.Error("two different long names became the same name")
	}
	for _, name := range []string{a, b, collector.CleanName(strings.Repeat("\xff", 10000))} {
		if len(name) > collector.MaxNameLength || !utf8.ValidString(name) {
			t.Errorf("%q is %d bytes", name, len(name))
		}
	}
	c := newCollector(t, collector.Options{})
	first := c.Resource(long)
	if again := c.Resource(long); again != first || c.Resource("") != c.Resource(collector.Unnamed) {
		t.Error("two lookups of one name returned different resources")
	}
}

// If there are more names than MaxResources, every call is counted, and the number of resources stays bounded.
func TestOverflowIsCounted(t *testing.T) {
	c := newCollector(t, collector.Options{MaxResources: 3})
	for i := range 10_000 {
		r := c.Resource(fmt.Sprint("name ", i))
		if want := i >= 3; (r.Name() == collector.Other) != want {
			t.Fatalf("name %d is counted for %q", i, r.Name())
		}
		e := r.Enter()
		e.Exit(nil)
		r.Block("")
	}
	var calls int64
	m := c.Seal()
	for _, r := range m.Resources {
		calls += r.Snapshot(nil).Total.Total()
	}
	h := c.Health()
	if calls != 20_000 || len(m.Resources) != 4 || h.Resources != 4 || h.Overflow != 2*9997 {
		t.Errorf("%d calls in %d resources, health %+v", calls, len(m.Resources), h)
	}
	if c.Resource(collector.Other) != c.Resource("one more") {
		t.Error("there are two resources for overflowing names")
	}
	// A lookup of Other uses no slot of the table of resources.
	c = newCollector(t, collector.Options{MaxResources: 2})
	c.Resource(collector.Other)
	if a, b := c.Resource("a"), c.Resource("b"); a.Name() != "a" || b.Name() != "b" {
		t.Errorf("a is %s, b is %s", a.Name(), b.Name())
	}
}

func TestNewReportsAllInvalidOptions(t *testing.T) {
	_, err := collector.New(collector.Options{MaxResources: -1, Windows: node.Options{SampleCount: 3, History: -1}})
	for _, part := range []string{"MaxResources: -1", "3 buckets do not divide", "history: -1ns"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("error %v does not say %q", err, part)
		}
	}
}

// Once a second is sealed, its records do not change, and no resource gets a new record of this second. If a resource
// is registered during Seal, there are therefore two cases. Seal also seals the seconds of this resource, or the first
// second of the resource is later than the sealed seconds.
func TestRegistrationDoesNotReopenASealedSecond(t *testing.T) {
	var clock atomic.Int64
	c := newCollector(t, collector.Options{
		MaxResources: 300,
		Now:          func() time.Time { return time.Unix(1_700_000_000, clock.Load()) },
	})
	var wg sync.WaitGroup
	stop := make(chan struct{})
	for w := range 4 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				e := c.Resource(fmt.Sprint(w, i)).Enter()
				e.Exit(nil)
				time.Sleep(time.Microsecond)
			}
		})
	}
	type row struct {
		name   string
		second int64
	}
	rows := map[row]node.MetricNode{}
	next := c.Seal().Open
	for range 300 {
		clock.Add(int64(130 * ms))
		runtime.Gosched()
		m := c.Seal()
		// Seal has sealed these ten seconds in an earlier round. No record of them may have changed, appeared or
		// vanished.
		for i := next - 10; i < next; i++ {
			for _, r := range m.Resources {
				rec, ok := r.View().Node().Second(i)
				if before, known := rows[row{r.Name(), i}]; ok != known || rec != before {
					t.Fatalf("%s, second %d: was %+v (%t), is %+v (%t)", r.Name(), i, before, known, rec, ok)
				}
			}
		}
		for ; next < m.Open; next++ {
			for _, r := range m.Resources {
				if rec, ok := r.View().Node().Second(next); ok {
					rows[row{r.Name(), next}] = rec
				}
			}
		}
	}
	close(stop)
	wg.Wait()
}

// Seal reads the clock, and then seals the seconds. In between, another goroutine may open the next second. Even then,
// all seconds before the field Open of the returned Boundary can be read for every resource.
func TestSecondsBeforeBoundaryAreSealed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCollector(t, collector.Options{})
		quiet, busy := c.Resource("quiet"), c.Resource("busy")
		time.Sleep(999 * ms)
		e := quiet.Enter()
		e.Exit(nil)
		before := c.Timeline().Now()
		time.Sleep(ms)
		busy.Block("") // this block opens the next second
		m := c.SealAt(before)
		for _, r := range m.Resources {
			if _, ok := r.View().Node().Second(m.Open - 1); !ok {
				t.Errorf("%s: the last sealed second cannot be read", r.Name())
			}
		}
	})
}

// Concurrent lookups of a new name return the same resource, even if they compete for the last free slot of the table.
func TestTheLastSlotIsTakenOnce(t *testing.T) {
	rounds := 20_000
	if testing.Short() {
		rounds = 2000
	}
	for range rounds {
		c := newCollector(t, collector.Options{MaxResources: 1})
		c.Resource(collector.Other)
		var a, b *collector.Resource
		var wg sync.WaitGroup
		wg.Go(func() { a = c.Resource("x") })
		wg.Go(func() { b = c.Resource("x") })
		wg.Wait()
		if a != b {
			t.Fatalf("%s and %s", a.Name(), b.Name())
		}
	}
}

// If Options.Now returns an earlier time than before, the time of the Collector stops. Every call is still counted.
func TestNowThatGoesBack(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 10, 0, time.UTC)
	c := newCollector(t, collector.Options{Now: func() time.Time { return now }})
	r := c.Resource("a")
	e := r.Enter()
	now = now.Add(-5 * time.Second)
	e.Exit(nil)
	now = now.Add(7 * time.Second)
	s := r.Snapshot(nil)
	if s.Total.Pass != 1 || s.Total.Complete != 1 || s.Total.RTSum != 0 || s.InFlight != 0 {
		t.Errorf("%+v", s)
	}
}

func BenchmarkEnterExit(b *testing.B) {
	r := newCollector(b, collector.Options{}).Resource("a")
	b.ReportAllocs()
	for b.Loop() {
		e := r.Enter()
		e.Exit(nil)
	}
}

func BenchmarkDo(b *testing.B) {
	r := newCollector(b, collector.Options{}).Resource("a")
	f := func() error { return nil }
	b.ReportAllocs()
	for b.Loop() {
		_ = r.Do(f)
	}
}

func BenchmarkResource(b *testing.B) {
	c := newCollector(b, collector.Options{})
	b.ReportAllocs()
	for b.Loop() {
		c.Resource("GET /users/{id}")
	}
}

func TestRecordingAllocatesNothing(t *testing.T) {
	r := newCollector(t, collector.Options{}).Resource("a")
	f := func() error { return nil }
	// AllocsPerRun rounds the average down. A few allocations, such as for the window of the first second, therefore do
	// not fail the test.
	if n := testing.AllocsPerRun(1000, func() {
		e := r.Enter()
		e.Exit(nil)
		_ = r.Do(f)
		r.Block("")
	}); n >= 1 {
		t.Errorf("%v allocations", n)
	}
}

// Do counts the call with the result of f: nil, an error, or a panic. A panic is an exception, whatever
// Options.Exception decides about errors.
func TestDo(t *testing.T) {
	var classes []string
	c := newCollector(t, collector.Options{
		Exception:      collector.Only(errBad),
		ExceptionClass: func(err error) string { classes = append(classes, err.Error()); return err.Error() },
	})
	for _, do := range []func(func() error) error{
		c.Resource("a").Do,
		func(f func() error) error {
			return c.Do(t.Context(), "a", func(ctx context.Context) error {
				_, e, _ := c.Enter(ctx, "below")
				e.Exit(nil)
				return f()
			}, collector.Origin("o"))
		},
	} {
		for _, err := range []error{nil, errBad, io.EOF} {
			if got := do(func() error { return err }); got != err {
				t.Errorf("%v, want %v", got, err)
			}
		}
		func() {
			defer func() {
				if recover() != "boom" {
					t.Error("the panic did not continue")
				}
			}()
			_ = do(func() error { panic("boom") })
		}()
	}
	if s := c.Resource("a").Snapshot(nil); s.Total.Pass != 8 || s.Total.Complete != 8 || s.Total.Exception != 4 ||
		s.InFlight != 0 {
		t.Errorf("%+v", s)
	}
	if got := fmt.Sprint(classes); got != "[bad collector: panicked bad collector: panicked]" {
		t.Error(got)
	}
	var off *collector.Collector
	if err := off.Do(t.Context(), "a", func(context.Context) error { return errBad }); err != errBad {
		t.Error(err)
	}
}

// For each bucket of the histogram, Exemplars returns the latest call with a response time in this bucket. It ignores
// calls without a valid trace ID.
func TestExemplars(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c, err := collector.New(collector.Options{
		Now:     func() time.Time { return now },
		Windows: node.Options{Bounds: []time.Duration{10 * time.Millisecond, time.Second}},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := c.Resource("a")
	call := func(rt time.Duration, err error, id string) {
		e := r.Enter()
		now = now.Add(rt)
		e.ExitTrace(err, collector.Code{}, id)
		e.ExitTrace(err, collector.Code{}, "too late")
	}
	if x := r.Exemplars(); len(x) != 0 {
		t.Errorf("%v", x)
	}
	call(10*time.Millisecond, nil, "first")
	call(9*time.Millisecond, nil, "second")
	call(2*time.Second, errors.New("failed"), "slow")
	call(time.Millisecond, nil, "")
	call(time.Millisecond, nil, strings.Repeat("x", 65))
	call(time.Millisecond, nil, "\xff")
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	want := []collector.Exemplar{
		{TraceID: "second", RT: 9 * time.Millisecond, At: start.Add(19 * time.Millisecond)},
		{TraceID: "slow", RT: 2 * time.Second, At: start.Add(2019 * time.Millisecond)},
	}
	if got := r.Exemplars(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if s := r.Snapshot(nil); s.Total.Complete != 6 || s.Total.Exception != 1 {
		t.Errorf("%+v", s.Total)
	}
	(&collector.Entry{}).ExitTrace(nil, collector.Code{}, "x")
}
