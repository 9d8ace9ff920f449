package bench_test

import (
	"context"
	"runtime"
	"slices"
	"testing"

	"github.com/windowstat/windowstat/bench"
	"github.com/windowstat/windowstat/collector"
)

// BenchmarkBeside compares windowstat with itself: the cost of an operation with the cost of a simpler operation. The
// two take turns that are short enough for the machine to be in the same state in both.
func BenchmarkBeside(b *testing.B) {
	call := func(name string, list []bench.Rival) func(b *testing.B) func() {
		var rec bench.Recorder
		return func(b *testing.B) func() {
			if rec.Call == nil {
				i := slices.IndexFunc(list, func(r bench.Rival) bool { return r.Name == name })
				var err error
				if rec, err = list[i].New(bench.Names(1)); err != nil {
					b.Fatal(err)
				}
				warm(rec, 1)
			}
			return func() { rec.Call(0) }
		}
	}
	handle := call("windowstat", bench.Rivals())
	limited := call("windowstat", bench.Limiters(bench.NeverReached))
	concurrency := func(origins int) func(b *testing.B) func() {
		return func(b *testing.B) func() {
			rec, err := bench.NewConcurrency(origins, bench.NeverReached)
			if err != nil {
				b.Fatal(err)
			}
			warm(rec, 1)
			return func() { rec.Call(0) }
		}
	}
	leaf := func(b *testing.B) func() {
		v, line := newLeaf(b)
		return func() { v.PassQPS(line.Now()) }
	}
	leafWindow := func(b *testing.B) func() {
		v, line := newLeaf(b)
		return func() { v.Window(line.Now()) }
	}
	view := func(b *testing.B) func() {
		r := newCalled(b)
		return func() { r.PassQPS() }
	}
	viewWindow := func(b *testing.B) func() {
		r := newCalled(b)
		return func() { r.Window() }
	}
	for _, c := range []struct {
		name            string
		ours, other     func(b *testing.B) func()
		calls, ofOthers int // in one turn
	}{
		{"context/handle", call("windowstat-context", bench.Rivals()), handle, 1000, 1000},
		{"context-nested/handle", call("windowstat-context-nested", bench.Rivals()), handle, 1000, 1000},
		{"limit/handle", limited, handle, 1000, 1000},
		{"concurrency-of-1-origin/handle", concurrency(1), handle, 1000, 1000},
		{"concurrency-of-10-origins/handle", concurrency(10), handle, 1000, 1000},
		{"concurrency-of-100-origins/handle", concurrency(100), handle, 1000, 1000},
		{"concurrency-of-1000-origins/handle", concurrency(1000), handle, 1000, 1000},
		{"qps-of-100-leaves/qps-of-one", view, leaf, 10, 1000},
		{"window-of-100-leaves/window-of-one", viewWindow, leafWindow, 10, 1000},
	} {
		var ours, other func()
		b.Run(c.name, func(b *testing.B) {
			if ours == nil {
				ours, other = c.ours(b), c.other(b)
			}
			var t turns
			for b.Loop() {
				t.add(each(c.calls, ours), each(c.ofOthers, other))
			}
			t.report(b)
		})
	}
}

// turns holds the time of the measured operation in each turn, the time of the operation that it is compared with, and
// their ratios.
type turns struct{ ours, other, ratio []float64 }

func (t *turns) add(ours, other float64) {
	t.ours, t.other, t.ratio = append(t.ours, ours), append(t.other, other), append(t.ratio, ours/other)
}

// report reports the medians, so that single turns disturbed by other work on the machine do not count.
func (t *turns) report(b *testing.B) {
	b.Helper()
	b.ReportMetric(median(t.ours), "ns/op")
	b.ReportMetric(median(t.other), "other-ns/op")
	b.ReportMetric(median(t.ratio), "ratio")
}

func median(list []float64) float64 {
	return slices.Sorted(slices.Values(list))[len(list)/2]
}

// each calls f the given number of times and returns the nanoseconds per call.
func each(times int, f func()) float64 {
	start := bench.Now()
	for range times {
		f()
	}
	return float64(bench.Now()-start) / float64(times)
}

// BenchmarkRegister compares the time to register each of the last of 10,000 resources, including its first call, with
// the time to register each of the first resources.
func BenchmarkRegister(b *testing.B) {
	const (
		first, last = 200, 100
		collectors  = 7 // minimum; the median counts
	)
	names := bench.Names(many)
	for _, way := range []struct {
		name     string
		register func(c *collector.Collector, name string)
	}{
		{"handle", func(c *collector.Collector, name string) {
			e := c.Resource(name).Enter()
			e.Exit(nil)
		}},
		{"context", func(c *collector.Collector, name string) {
			_, e, _ := c.Enter(context.Background(), name, collector.Origin("web"), collector.Entrance("http"))
			e.Exit(nil)
		}},
	} {
		b.Run(way.name+"-10000th/"+way.name+"-100th", func(b *testing.B) {
			var t turns
			for b.Loop() {
				for range collectors {
					runtime.GC()
					c, err := collector.New(collector.Options{})
					if err != nil {
						b.Fatal(err)
					}
					register := func(names []string) float64 {
						i := 0
						return each(len(names), func() {
							way.register(c, names[i])
							i++
						})
					}
					atFirst := register(names[:first])
					register(names[first : many-last])
					t.add(register(names[many-last:]), atFirst)
					if n := c.Health().Leaves; n != many {
						b.Fatalf("there are %d leaves, want %d", n, many)
					}
				}
			}
			t.report(b)
		})
	}
}
