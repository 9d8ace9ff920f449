package bench_test

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/windowstat/windowstat/bench"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// The number of resources in memory benchmarks, and the smaller number for resources that are in use for a long time.
const (
	measured     = 2000
	measuredLong = 200
)

// BenchmarkMemory reports the bytes of heap for each resource. It measures windowstat in four states: registered and
// not used; with every window full; with a full history of ten minutes, too; and with histograms for the same time. It
// measures each rival after calls whose response times are distributed like the response times of a service.
func BenchmarkMemory(b *testing.B) {
	reportBytes(b, "windowstat-unused", measured, func(b *testing.B) any {
		c, _ := newCollector(b, measured, node.Options{})
		return c
	})
	reportBytes(b, "windowstat-full", measured, func(b *testing.B) any {
		c, clock := newCollector(b, measured, node.Options{})
		fill(c, clock, 70*time.Second)
		return c
	})
	reportBytes(b, "windowstat-ten-minutes", measuredLong, func(b *testing.B) any {
		c, clock := newCollector(b, measuredLong, node.Options{})
		fill(c, clock, 610*time.Second)
		return c
	})
	reportBytes(b, "windowstat-ten-minutes-of-histograms", measuredLong, func(b *testing.B) any {
		c, clock := newCollector(b, measuredLong, node.Options{Histograms: 10 * time.Minute})
		fill(c, clock, 610*time.Second)
		return c
	})
	names := bench.Names(measured)
	rts := bench.ResponseTimes(500)
	for _, r := range bench.Rivals() {
		reportBytes(b, r.Name, measured, func(b *testing.B) any {
			rec, err := r.New(names)
			switch {
			case err != nil:
				b.Fatal(err)
			case rec.Took == nil:
				b.Skip("cannot be told response times")
			}
			for _, rt := range rts {
				for i := range names {
					rec.Took(i, rt)
				}
			}
			return rec
		})
	}
}

// reportBytes reports the heap growth per resource caused by the value that made returns.
func reportBytes(b *testing.B, name string, resources int, made func(b *testing.B) any) {
	b.Run(name, func(b *testing.B) {
		var sum float64
		for b.Loop() {
			before := heap()
			keep := made(b)
			sum += heap() - before
			runtime.KeepAlive(keep)
		}
		b.ReportMetric(sum/float64(b.N)/float64(resources), "B/resource")
		b.ReportMetric(0, "ns/op")
	})
}

func heap() float64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc)
}

// newCollector returns a collector with the measured resources, and its clock.
func newCollector(b *testing.B, resources int, windows node.Options) (*collector.Collector, *time.Time) {
	b.Helper()
	clock := time.Unix(1_700_000_000, 0)
	c, err := collector.New(collector.Options{
		MaxResources: resources, Windows: windows,
		Now: func() time.Time { return clock },
	})
	if err != nil {
		b.Fatal(err)
	}
	for _, name := range bench.Names(resources) {
		c.Resource(name)
	}
	return c, &clock
}

// BenchmarkMemory40000 reports the heap of 10,000 resources that 4 origins each call, every second, with full windows,
// and the growth of the heap in another minute.
func BenchmarkMemory40000(b *testing.B) {
	const leaves = 4 * many
	b.Run("windowstat", func(b *testing.B) {
		var full, later float64
		for b.Loop() {
			before := heap()
			clock := time.Unix(1_700_000_000, 0)
			c, err := collector.New(collector.Options{
				MaxResources: many, MaxMemory: 1 << 40,
				Windows: node.Options{History: time.Minute}, Now: func() time.Time { return clock },
			})
			if err != nil {
				b.Fatal(err)
			}
			names := bench.Names(many)
			callAll(b, c, &clock, names)
			full = heap() - before
			callAll(b, c, &clock, names)
			later = heap() - before
			h := c.Health()
			if h.Leaves != leaves || h.Overflow+h.OriginOverflow+h.EntranceOverflow+h.LeafOverflow > 0 {
				b.Fatalf("not every leaf has a place: %+v", h)
			}
		}
		b.ReportMetric(full/(1<<20), "MiB")
		b.ReportMetric((later-full)/(1<<20), "grown-MiB")
		b.ReportMetric(full/leaves, "B/leaf")
		b.ReportMetric(0, "ns/op")
	})
}

// callAll makes 4 calls a second to each resource from each of 4 origins, for 70 seconds. Each second has the same
// response times around 20 ms, so the second minute adds no new values.
func callAll(b *testing.B, c *collector.Collector, clock *time.Time, names []string) {
	b.Helper()
	const (
		buckets = 2 * 70
		length  = time.Second / 2
		calls   = 2 // in a bucket
	)
	origins := [...]string{"web", "app", "batch", "partner"}
	rts := bench.ResponseTimes(2 * calls)
	for bucket := range buckets {
		*clock = clock.Add(length)
		for _, name := range names {
			for _, origin := range origins {
				for k := range calls {
					began := clock.Add(-rts[bucket%2*calls+k])
					_, e, err := c.Enter(context.Background(), name,
						collector.Origin(origin), collector.Entrance("http"), collector.StartedAt(began))
					if err != nil {
						b.Fatal(err)
					}
					e.Exit(nil)
				}
			}
		}
	}
}

// fill makes 100 calls a second to each resource for the given time, with response times around 20 ms.
func fill(c *collector.Collector, clock *time.Time, length time.Duration) {
	const (
		interval = 10 * time.Millisecond
		most     = 256 // in flight
	)
	type event struct {
		at   time.Duration
		call int
		exit bool
	}
	calls := int(length / interval)
	events := make([]event, 0, 2*calls)
	for i, rt := range bench.ResponseTimes(calls) {
		at := time.Duration(i) * interval
		events = append(events, event{at: at, call: i}, event{at: at + min(rt, (most-1)*interval), call: i, exit: true})
	}
	slices.SortStableFunc(events, func(a, b event) int { return cmp.Compare(a.at, b.at) })

	resources := c.Seal().Resources
	inFlight := make([][most]collector.Entry, len(resources))
	start := *clock
	for _, e := range events {
		*clock = start.Add(e.at)
		for i, r := range resources {
			if entry := &inFlight[i][e.call%most]; e.exit {
				entry.Exit(nil)
			} else {
				*entry = r.Enter()
			}
		}
	}
}

// BenchmarkHistory reports the memory of the history for each resource and busy second. The history has no histograms;
// the minute window, which has them, is not part of it.
func BenchmarkHistory(b *testing.B) {
	const (
		resources = 40
		calls     = 150 // enough to make most counts take two bytes
		minutes   = 10
	)
	b.Run("windowstat", func(b *testing.B) {
		// Both services run the same load for the same time; one keeps only the last minute.
		with := func(history time.Duration) float64 {
			before := heap()
			s, err := bench.NewService(bench.Traffic{
				Resources: resources, Seconds: 60 * (minutes + 1),
				Calls: calls, History: history,
			})
			if err != nil {
				b.Fatal(err)
			}
			after := heap()
			runtime.KeepAlive(s)
			return after - before
		}
		var sum float64
		for b.Loop() {
			sum += with((minutes+1)*time.Minute) - with(time.Minute)
		}
		b.ReportMetric(sum/float64(b.N)/(resources*minutes*60), "B/second")
		b.ReportMetric(0, "ns/op")
	})
}

// BenchmarkMemoryOfMadeUpNames reports the heap of a service with the default options after eleven minutes. In every
// second, clients call 100,000 invented names from as many invented origins.
func BenchmarkMemoryOfMadeUpNames(b *testing.B) {
	const (
		names   = 100_000
		seconds = 11 * 60
		mib     = 1 << 20
	)
	b.Run("windowstat", func(b *testing.B) {
		resources := bench.Names(names)
		origins := make([]collector.CallOption, names)
		for i, name := range resources {
			origins[i] = collector.Origin("from " + name)
		}
		rts := bench.ResponseTimes(1000)
		var total, reported, leaves float64
		for b.Loop() {
			before := heap()
			clock := time.Unix(1_700_000_000, 0)
			c, err := collector.New(collector.Options{Now: func() time.Time { return clock }})
			if err != nil {
				b.Fatal(err)
			}
			for second := range seconds {
				began := clock
				for i, name := range resources {
					clock = began.Add(time.Duration(i) * time.Second / names)
					start := clock.Add(-rts[(i+31*second)%len(rts)])
					_, e, err := c.Enter(context.Background(), name, origins[i], collector.StartedAt(start))
					if err != nil {
						b.Fatal(err)
					}
					e.Exit(nil)
				}
				clock = began.Add(time.Second)
				c.Seal()
			}
			grown, held, h := heap()-before, float64(c.Memory().Sum()), c.Health()
			if most := float64(h.MaxMemory); grown > most || held > most {
				b.Errorf("%.0f bytes of heap, %.0f reported; at most %.0f are allowed", grown, held, most)
			}
			total, reported = total+grown, reported+held
			leaves = float64(h.Leaves)
			if n := c.Tree().View().Snapshot(nil).Total.Complete; n != names*seconds {
				b.Fatalf("%d calls, want %d", n, names*seconds)
			}
			runtime.KeepAlive(c)
		}
		b.ReportMetric(total/float64(b.N)/mib, "heap-MiB")
		b.ReportMetric(reported/float64(b.N)/mib, "reported-MiB")
		b.ReportMetric(collector.DefaultMaxMemory/mib, "maximum-MiB")
		b.ReportMetric(leaves, "leaves")
		b.ReportMetric(0, "ns/op")
	})
}
