package bench_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/windowstat/windowstat/bench"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/live"
	"github.com/windowstat/windowstat/exporter/prom"
)

// BenchmarkScale measures the work that windowstat does for all of a service, for services of 100 to 100,000 resources
// and for one resource with 1 to 1,000 origins. It reports the time of one operation on the whole service.
func BenchmarkScale(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000, 100_000} {
		scale(b, "resources", n, bench.Traffic{Resources: n})
	}
	for _, n := range []int{1, 10, 100, 1000} {
		scale(b, "origins", n, bench.Traffic{Resources: 1, Origins: n})
	}
}

// maker prepares the measurement of a cost. once runs the operation a single time and returns its nanoseconds.
type maker func(b *testing.B, s *bench.Service, t bench.Traffic) (once func() float64)

// costs lists the operations on a whole service. The first operation runs on a new service.
var costs = []struct {
	name string
	most int // maximum leaves for a reasonable time and memory
	make maker
}{
	{"register by handle", 100_000, registering(func(c *collector.Collector, name, _ string) {
		e := c.Resource(name).Enter()
		e.Exit(nil)
	})},
	{"register through a context", 100_000, registering(func(c *collector.Collector, name, origin string) {
		_, e, _ := c.Enter(context.Background(), name, collector.Origin(origin), collector.Entrance("http"))
		e.Exit(nil)
	})},
	{"first call after a boundary", 100_000, turning},
	{"seal", 100_000, func(b *testing.B, s *bench.Service, _ bench.Traffic) func() float64 {
		return func() float64 {
			advance(b, s, 1)
			return each(1, func() { s.Collector.Seal() })
		}
	}},
	{"metrics page", 100_000, func(b *testing.B, s *bench.Service, _ bench.Traffic) func() float64 {
		page, err := prom.Handler(s.Collector, prom.Options{})
		if err != nil {
			b.Fatal(err)
		}
		return asked(b, page, "/metrics")
	}},
	{"page of 15 seconds", 10_000, func(b *testing.B, s *bench.Service, _ bench.Traffic) func() float64 {
		return asked(b, newSeconds(b, s), "/metrics/seconds?"+bench.SecondsQuery)
	}},
	{"cursor with nothing new", 100_000, func(b *testing.B, s *bench.Service, _ bench.Traffic) func() float64 {
		page, r := newSeconds(b, s),
			request("/metrics/seconds?cursor=scale&metric=windowstat_persecond_pass", plainText)
		ask(b, page, r) // receives everything
		return func() float64 {
			var c client
			ns := each(1, func() { page.ServeHTTP(&c, r) })
			if c.status > http.StatusOK || c.bytes > 0 {
				b.Fatalf("status %d, %d bytes", c.status, c.bytes)
			}
			return ns
		}
	}},
	{"second of the metric log", 100_000, func(b *testing.B, s *bench.Service, _ bench.Traffic) func() float64 {
		w := newWriter(b, s)
		return func() float64 {
			advance(b, s, 1)
			return each(1, func() { flush(b, w) })
		}
	}},
	{"first viewer of the live page", 10_000, func(b *testing.B, s *bench.Service, _ bench.Traffic) func() float64 {
		return func() float64 { return asked(b, newLive(b, s), "/live/seconds")() }
	}},
	{"second of the live page", 10_000, func(b *testing.B, s *bench.Service, _ bench.Traffic) func() float64 {
		page := newLive(b, s)
		at := position(b, page, "")
		return func() float64 {
			advance(b, s, 1)
			ns := asked(b, page, "/live/seconds?after="+at)()
			at = position(b, page, at)
			return ns
		}
	}},
	{"push of a second", 100_000, func(b *testing.B, s *bench.Service, _ bench.Traffic) func() float64 {
		to := bench.NewReceiver()
		b.Cleanup(to.Close)
		return func() float64 {
			took, err := to.Push(s)
			if err != nil {
				b.Fatal(err)
			}
			return float64(took)
		}
	}},
}

// scale measures all costs of a service of one size.
func scale(b *testing.B, what string, n int, t bench.Traffic) {
	const atLeast, enough = 3, time.Second
	t.Seconds, t.Calls = bench.SecondsShown+5, 1
	var s *bench.Service
	for _, c := range costs {
		if n > c.most || what == "origins" && c.name == "register by handle" {
			continue
		}
		b.Run(fmt.Sprintf("%s/%s/%d", c.name, what, n), func(b *testing.B) {
			if s == nil {
				s = newService(b, t)
			}
			once := c.make(b, s, t)
			once() // until buffers have their final size
			runtime.GC()
			var times []float64
			for b.Loop() {
				for began := bench.Now(); ; {
					times = append(times, once())
					if len(times) >= atLeast || bench.Now()-began > enough {
						break
					}
				}
			}
			b.ReportMetric(median(times), "ns/op")
		})
	}
}

// registering creates all leaves of a Collector by their first call.
func registering(register func(c *collector.Collector, name, origin string)) maker {
	return func(b *testing.B, _ *bench.Service, t bench.Traffic) func() float64 {
		names, origins := bench.Names(t.Resources), bench.Names(max(t.Origins, 1))
		return func() float64 {
			leaves := len(names) * len(origins)
			c, err := collector.New(collector.Options{
				MaxResources: len(names),
				MaxOrigins:   len(origins), MaxMemory: 1 << 40,
			})
			if err != nil {
				b.Fatal(err)
			}
			ns := each(1, func() {
				for _, name := range names {
					for _, origin := range origins {
						register(c, name, origin)
					}
				}
			})
			if n := c.Health().Leaves; n != leaves {
				b.Fatalf("%d leaves, want %d", n, leaves)
			}
			return ns
		}
	}
}

// turning calls each leaf once, for the first time after a second with calls.
func turning(b *testing.B, s *bench.Service, _ bench.Traffic) func() float64 {
	return func() float64 {
		advance(b, s, 1)
		return each(1, func() {
			if err := s.Call(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// newSeconds returns a page of seconds without a limit on its length.
func newSeconds(b *testing.B, s *bench.Service) http.Handler {
	b.Helper()
	page, err := prom.NewSeconds(s.Collector, prom.SecondsOptions{MaxSamples: 1 << 30, MaxBytes: 1 << 30})
	if err != nil {
		b.Fatal(err)
	}
	return page
}

// asked requests a page.
func asked(b *testing.B, page http.Handler, target string) func() float64 {
	r := request(target, plainText)
	return func() float64 { return each(1, func() { ask(b, page, r) }) }
}

// position returns the position of a viewer of the live page after a request for the events since the position after.
func position(b *testing.B, page *live.Page, after string) string {
	b.Helper()
	rec := httptest.NewRecorder()
	page.ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/live/seconds?after="+after, nil))
	var update struct{ After string } // position of the next request
	if err := json.Unmarshal(rec.Body.Bytes(), &update); err != nil || update.After == "" {
		b.Fatalf("%v: %.100s", err, rec.Body)
	}
	return update.After
}
