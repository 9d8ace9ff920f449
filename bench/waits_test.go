package bench_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/windowstat/windowstat/bench"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/live"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/exporter/push"
)

// BenchmarkWaits reports how long callers wait while an operation works on all of 10,000 resources with five origins
// each. It measures calls by a handle, calls by name, and registrations of a new name. Half of them take at most p50,
// all but one in a thousand at most p99.9, and none longer than max.
//
// The baseline runs no operation. The constant work is unrelated to windowstat and uses a processor in the same way.
// Waits that exceed those under constant work are waits for locks.
func BenchmarkWaits(b *testing.B) {
	for _, o := range []struct {
		name string
		work func(*crowd, *testing.B) (work func())
	}{
		{"quiet", func(*crowd, *testing.B) func() { return func() { time.Sleep(time.Millisecond) } }},
		{"constant-work", func(*crowd, *testing.B) func() {
			return func() {
				for range 1000 {
					bench.Now()
				}
			}
		}},
		{"set-limits", (*crowd).setLimits},
		{"retirement", (*crowd).retire},
		{"page", func(c *crowd, b *testing.B) func() {
			h, err := prom.Handler(c.stats, prom.Options{})
			return c.ask(b, h, "/metrics", err)
		}},
		{"seconds-page", func(c *crowd, b *testing.B) func() {
			h, err := prom.NewSeconds(c.stats, prom.SecondsOptions{})
			return c.ask(b, h, "/?"+bench.SecondsQuery, err)
		}},
		{"metric-log", (*crowd).log},
		{"live-page", (*crowd).look},
		{"push", (*crowd).push},
	} {
		b.Run(o.name, func(b *testing.B) {
			c := newCrowd(b)
			work := o.work(c, b)
			var count int
			for b.Loop() {
				stop := c.call()
				for end := bench.Now() + time.Second; bench.Now() < end; count++ {
					work()
				}
				stop()
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(count)/float64(b.N), "works/op")
			for _, w := range c.waits {
				b.ReportMetric(float64(w.h.ValueAtQuantile(50)), w.name+"-p50-ns")
				b.ReportMetric(float64(w.h.ValueAtQuantile(99.9)), w.name+"-p99.9-ns")
				b.ReportMetric(float64(w.h.Max()), w.name+"-max-ns")
			}
		})
	}
}

// crowd is a collector with many resources, and its callers.
type crowd struct {
	stats *collector.Collector
	names []string
	ahead atomic.Int64 // of the clock
	fresh int
	waits []*wait
}

// wait holds the waiting times of callers of one kind.
type wait struct {
	name string
	call func(i int)
	rest time.Duration // between calls
	h    *hdrhistogram.Histogram
}

const crowdOrigins = 5

func newCrowd(b *testing.B) *crowd {
	b.Helper()
	c := &crowd{names: bench.Names(10_000)}
	began := time.Unix(1_700_000_000, 0).Add(-bench.Now())
	stats, err := collector.New(collector.Options{
		MaxResources: 1 << 20,
		MaxMemory:    1 << 40,
		Now:          func() time.Time { return began.Add(bench.Now() + time.Duration(c.ahead.Load())) },
	})
	if err != nil {
		b.Fatal(err)
	}
	c.stats = stats
	var handles []*collector.Resource
	for _, name := range c.names[:1000] {
		handles = append(handles, stats.Resource(name))
	}
	for range 3 {
		c.useAll()
		c.ahead.Add(int64(time.Second))
	}
	add := func(name string, rest time.Duration, call func(i int)) {
		c.waits = append(c.waits, &wait{name, call, rest, hdrhistogram.New(1, time.Minute.Nanoseconds(), 3)})
	}
	picks := bench.Picks(len(handles))
	add("handle", 0, func(i int) {
		e := handles[picks[i&(len(picks)-1)]].Enter()
		e.Exit(nil)
	})
	add("name", 0, func(i int) {
		_, e, _ := stats.Enter(context.Background(), c.names[picks[i&(len(picks)-1)]])
		e.Exit(nil)
	})
	add("new", time.Millisecond, func(int) { // few, to keep the size of the collector
		stats.Resource(fmt.Sprint("GET /resource/new/", c.fresh))
		c.fresh++
	})
	return c
}

// useAll calls every resource from every origin.
func (c *crowd) useAll() {
	for _, name := range c.names {
		for o := range crowdOrigins {
			_, e, _ := c.stats.Enter(context.Background(), name,
				collector.Origin(fmt.Sprint("origin", o)), collector.Inbound())
			e.Exit(nil)
		}
	}
}

// call runs the callers until stop is called.
func (c *crowd) call() (stop func()) {
	var done atomic.Bool
	var wg sync.WaitGroup
	for _, w := range c.waits {
		wg.Go(func() {
			for i := 0; !done.Load(); i++ {
				began := bench.Now()
				w.call(i)
				_ = w.h.RecordValue(int64(bench.Now() - began))
				time.Sleep(w.rest)
			}
		})
	}
	return func() {
		done.Store(true)
		wg.Wait()
	}
}

// setLimits replaces 1,000 limits with patterns. Each pattern matches ten resources.
func (c *crowd) setLimits(b *testing.B) func() {
	limits := make([]collector.Limit, 1000)
	for i := range limits {
		limits[i] = collector.Limit{Resource: fmt.Sprintf("GET /resource/0%03d*", i)}
	}
	var count int64
	return func() {
		count++
		for i := range limits {
			limits[i].Count = 1_000_000_000 + count
		}
		if err := c.stats.SetLimits(limits); err != nil {
			b.Fatal(err)
		}
	}
}

// retire makes all leaves idle for hours and retires them; then it uses them again.
func (c *crowd) retire(*testing.B) func() {
	return func() {
		c.ahead.Add(int64(2 * time.Hour))
		c.stats.Seal()
		c.useAll()
	}
}

// ask requests a page.
func (c *crowd) ask(b *testing.B, h http.Handler, url string, err error) func() {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodGet, url, nil)
	return func() { h.ServeHTTP(new(client), r) }
}

// log writes a second to the metric log.
func (c *crowd) log(b *testing.B) func() {
	w, err := metriclog.New(c.stats, metriclog.Options{Dir: b.TempDir(), App: "waits"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = w.Close() })
	return func() {
		c.useAll()
		c.ahead.Add(int64(time.Second))
		if err := w.Flush(); err != nil {
			b.Fatal(err)
		}
	}
}

// look is a viewer of the live page that receives every second after its end.
func (c *crowd) look(b *testing.B) func() {
	page, err := live.New(c.stats, live.Options{})
	if err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(page)
	b.Cleanup(server.Close)
	b.Cleanup(page.Close)
	resp, err := http.Get(server.URL + "/stream")
	if err != nil {
		b.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		b.Fatal(resp.Status)
	}
	b.Cleanup(func() { _ = resp.Body.Close() })
	go func() { _, _ = io.Copy(io.Discard, resp.Body) }()
	return c.useAll
}

// push sends every second to a server that accepts everything.
func (c *crowd) push(b *testing.B) func() {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	b.Cleanup(server.Close)
	p, err := push.New(c.stats, push.Options{
		URL:      server.URL,
		Labels:   map[string]string{"job": "waits", "instance": "one"},
		Interval: time.Second,
		Logger:   slog.New(slog.DiscardHandler),
	})
	if err != nil {
		b.Fatal(err)
	}
	stop := p.Start()
	b.Cleanup(func() { _ = stop() })
	return c.useAll
}
