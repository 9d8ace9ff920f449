package bench_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/windowstat/windowstat/bench"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/push"
	"github.com/windowstat/windowstat/exporter/sampler"
)

const (
	scraped   = 15 * time.Second // how often clients scrape both pages, and how long a turn is
	callsEach = 10               // of a resource in a second
	callers   = 4                // goroutines that wake up each millisecond and make their part of the calls
)

// BenchmarkAttached reports the cost of all exporters together for a service under a paced load. It compares the
// service with the same service without exporters, in turns. The exporters are the metrics page and a cursor of
// seconds, which are both scraped, a metric log, a viewer of the live page, a push of every second, and a sampler.
// Scraper, viewer and server run in a separate process, so their usage does not count.
//
// The same goroutines make the calls and report how late they wake up. The result is the median of the quantiles of
// each second. Work that is done once a second shows in this median, but a single second in which another program had
// the processors does not.
func BenchmarkAttached(b *testing.B) {
	for _, resources := range []int{1000, many} {
		b.Run(fmt.Sprintf("%d-resources", resources), func(b *testing.B) {
			bare, all := spent{}, spent{}
			for b.Loop() {
				for range 3 {
					c, err := collector.New(collector.Options{MaxResources: resources})
					check(b, err)
					bare.measure(b, c, resources)
					c, detach := attach(b, resources)
					all.measure(b, c, resources)
					detach()
				}
			}
			b.ReportMetric(0, "ns/op")
			for unit := range all {
				b.ReportMetric(median(bare[unit]), "bare-"+unit)
				b.ReportMetric(median(all[unit]), unit)
			}
		})
	}
}

// attach creates a service with every exporter, and its clients.
func attach(b *testing.B, resources int) (c *collector.Collector, detach func()) {
	b.Helper()
	clients := exec.Command(os.Args[0])
	clients.Env = append(os.Environ(), clientsOf+"=1")
	clients.Stderr = os.Stderr
	in, err := clients.StdinPipe()
	check(b, err)
	out, err := clients.StdoutPipe()
	check(b, err)
	check(b, clients.Start())
	var receiver string
	_, err = fmt.Fscanln(out, &receiver)
	check(b, err)

	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector())
	x, err := exporter.New(exporter.Options{
		App:       "bench",
		Logger:    slog.New(slog.DiscardHandler),
		Collector: collector.Options{MaxResources: resources},
		Log:       metriclog.Options{Dir: b.TempDir()},
		Sampler:   sampler.Options{Gatherer: registry},
		Push:      []push.Options{{URL: receiver}},
	})
	check(b, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(b, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- x.Serve(ctx, l) }()
	_, err = fmt.Fprintf(in, "http://%v\n", l.Addr())
	check(b, err)
	return x.Collector, func() {
		cancel()
		check(b, <-served)
		check(b, in.Close())
		check(b, clients.Wait())
	}
}

func check(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// clientsOf is the environment variable that makes this program run the clients of a service.
const clientsOf = "BENCH_CLIENTS"

// clients accepts pushes at an address that it prints. It reads the address of the service, scrapes the service and
// reads its live page, until its input ends.
func clients() {
	r := bench.NewReceiver()
	defer r.Close()
	fmt.Println(r.URL())
	var service string
	if _, err := fmt.Scanln(&service); err != nil {
		return
	}
	get := func(path string) {
		if resp, err := http.Get(service + path); err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
	}
	go get("/live/stream")
	go func() {
		for ; ; time.Sleep(scraped) {
			get("/metrics")
			get("/metrics/seconds?cursor=bench")
		}
	}()
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// spent holds the resources that a service used in each of its turns, by unit.
type spent map[string][]float64

func (s spent) add(unit string, v float64) { s[unit] = append(s[unit], v) }

// measure calls the resources of a service for a turn. The turn begins after the first scrape of the clients.
func (s spent) measure(b *testing.B, c *collector.Collector, resources int) {
	b.Helper()
	const first = 3 * time.Second
	var handles []*collector.Resource
	for _, name := range bench.Names(resources) {
		handles = append(handles, c.Resource(name))
	}
	var measured, done atomic.Bool
	var all sync.WaitGroup
	var late [callers][]float64
	var call [callers]*hdrhistogram.Histogram
	for i := range callers {
		late[i], call[i] = make([]float64, 0, 2*scraped/time.Millisecond), hdrhistogram.New(1, int64(time.Minute), 3)
		all.Go(func() { callPaced(handles, i, &late[i], call[i], &measured, &done) })
	}
	time.Sleep(first)
	runtime.GC()
	measured.Store(true)
	began, cpu, before := bench.Now(), processorTime(b), readMemory()
	var peak float64
	for bench.Now()-began < scraped {
		time.Sleep(5 * time.Millisecond)
		peak = max(peak, readMemory()[2])
	}
	after, took, used := readMemory(), (bench.Now() - began).Seconds(), processorTime(b)-cpu
	done.Store(true)
	all.Wait()
	for from, to := 0, 1000; to <= len(late[0]); from, to = to, to+1000 {
		var second []float64
		for i := range callers {
			second = append(second, late[i][min(from, len(late[i])):min(to, len(late[i]))]...)
		}
		slices.Sort(second)
		s.add("late-p50-ns", second[len(second)/2])
		s.add("late-p99-ns", second[len(second)*99/100])
	}
	for i := 1; i < callers; i++ {
		call[0].Merge(call[i])
	}
	s.add("core-percent", 100*used.Seconds()/took)
	s.add("call-p99.99-ns", float64(call[0].ValueAtQuantile(99.99)))
	s.add("B/s", (after[0]-before[0])/took)
	s.add("allocs/s", (after[1]-before[1])/took)
	s.add("peak-MiB", peak/(1<<20))
}

// callPaced makes the calls of one caller, and records how late the caller wakes up and how long calls take. Each call
// is in flight for some milliseconds.
func callPaced(handles []*collector.Resource, caller int, late *[]float64, call *hdrhistogram.Histogram,
	measured, done *atomic.Bool,
) {
	picks := bench.Picks(len(handles))
	next, calls := caller*len(picks)/callers, len(handles)*callsEach/callers/1000
	var inFlight [20][]collector.Entry
	for due := bench.Now(); !done.Load(); due += time.Millisecond {
		time.Sleep(due - bench.Now())
		now, records := bench.Now(), measured.Load()
		if records {
			*late = append(*late, float64(now-due))
		}
		record := func(began time.Duration) {
			if records {
				_ = call.RecordValue(int64(bench.Now() - began))
			}
		}
		entries := &inFlight[int(due/time.Millisecond)%len(inFlight)]
		for i := range *entries {
			began := bench.Now()
			(*entries)[i].Exit(nil)
			record(began)
		}
		*entries = (*entries)[:0]
		for range calls {
			next = (next + 1) % len(picks)
			began := bench.Now()
			*entries = append(*entries, handles[picks[next]].Enter())
			record(began)
		}
	}
}

// readMemory returns the bytes and objects allocated since the start of the process, and the bytes of heap in use.
func readMemory() (v [3]float64) {
	read := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"},
		{Name: "/gc/heap/allocs:objects"},
		{Name: "/memory/classes/heap/objects:bytes"},
	}
	metrics.Read(read)
	for i := range v {
		v[i] = float64(read[i].Value.Uint64())
	}
	return v
}
