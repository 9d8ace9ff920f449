// Command scale measures the cost of exporting every second of a service with many resources to a running server. It
// produces the figures of docs/scale.md.
//
//	go run ./scale -way remote -url http://127.0.0.1:9090/api/v1/write
//	go run ./scale -way scrape -listen 127.0.0.1:9719
//
// With -way metrics a server scrapes /metrics instead, for comparison. TestCost makes the table of all ways.
//
// A server that scrapes must request the same metrics that are pushed. With -calls 0 all resources are idle, and send
// less after a minute. The printed number of samples of a scrape is then too high; query the server for the number of
// samples that it stored.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/exporter/push"
)

var (
	way = flag.String("way", "none",
		"how seconds are handed on: none, remote, remote2 (2.0), text, scrape or metrics")
	url       = flag.String("url", "", "where remote, remote2 and text push to")
	addr      = flag.String("listen", "", "where scrape and metrics listen")
	instance  = flag.String("instance", "scale", "label of what is pushed")
	interval  = flag.Duration("interval", time.Second, "how often to push")
	resources = flag.Int("resources", 1000, "how many there are")
	calls     = flag.Int("calls", 5, "of each resource in a second, on average")
	d         = flag.Duration("d", time.Minute, "how long to measure")
)

// metrics are ten of the existing metrics, including the most expensive one.
var metrics = []string{
	"windowstat_persecond_pass", "windowstat_persecond_block", "windowstat_persecond_complete",
	"windowstat_persecond_exception",
	"windowstat_persecond_in_flight_max", "windowstat_persecond_pass_peak", "windowstat_persecond_rt_sum_seconds",
	"windowstat_persecond_rt_min_seconds", "windowstat_persecond_rt_max_seconds", "windowstat_persecond_rt_p99_seconds",
}

func main() {
	flag.Parse()
	if err := measure(); err != nil {
		log.Fatal(err)
	}
}

func measure() error {
	c, err := collector.New(collector.Options{})
	if err != nil {
		return err
	}
	go load(c)
	handed, err := handOn(c)
	if err != nil {
		return err
	}
	time.Sleep(5 * time.Second) // until all buffers and tables have reached their size
	before := used()
	before.samples, before.bytes = handed()
	time.Sleep(*d)
	after := used()
	after.samples, after.bytes = handed()

	seconds := after.at.Sub(before.at).Seconds()
	samples, bytes := after.samples-before.samples, after.bytes-before.bytes
	fmt.Printf("%s every %v, %d resources: %.2f %% of a core, %.0f KiB of garbage a second; %.0f samples and %.0f "+
		"bytes a second, %.2f bytes a sample\n",
		*way, *interval, *resources, 100*(after.cpu-before.cpu).Seconds()/seconds,
		float64(after.garbage-before.garbage)/seconds/1024,
		samples/seconds, bytes/seconds, bytes/max(samples, 1))
	return nil
}

// A use holds the resources that the process has used so far, and the samples and bytes that it has exported.
type use struct {
	at             time.Time
	cpu            time.Duration
	garbage        uint64
	samples, bytes float64
}

func used() use {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		log.Fatal(err)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return use{at: time.Now(), cpu: time.Duration(r.Utime.Nano() + r.Stime.Nano()), garbage: m.TotalAlloc}
}

// handOn starts the export of seconds. The returned function returns the number of samples and bytes so far.
func handOn(c *collector.Collector) (handed func() (samples, bytes float64), err error) {
	handed = func() (samples, bytes float64) {
		for _, m := range c.Metrics() {
			m.Each(func(value float64, _ ...string) {
				switch m.Name {
				case "push_samples_total":
					samples = value
				case "push_bytes_total":
					bytes = value
				}
			})
		}
		return samples, bytes
	}
	labels := map[string]string{"job": "scale", "instance": *instance}
	switch *way {
	case "remote", "remote2", "text":
		format := map[string]push.Format{
			"remote": push.RemoteWrite, "remote2": push.RemoteWrite2,
			"text": push.VictoriaMetrics,
		}[*way]
		p, err := push.New(c,
			push.Options{Format: format, URL: *url, Labels: labels, Interval: *interval, Metrics: metrics})
		if err != nil {
			return nil, err
		}
		go func() { log.Fatal(p.Run(context.Background())) }()
		return handed, nil
	case "scrape":
		page, err := prom.NewSeconds(c, prom.SecondsOptions{})
		if err != nil {
			return nil, err
		}
		return serve(page, page.ConnState)
	case "metrics":
		page, err := prom.Handler(c, prom.Options{})
		if err != nil {
			return nil, err
		}
		return serve(page, nil)
	}
	return func() (samples, bytes float64) { return 0, 0 }, nil
}

// serve serves a page. It counts the bytes on the wire, and computes the samples from the elapsed seconds.
func serve(page http.Handler, hook func(net.Conn, http.ConnState)) (handed func() (samples, bytes float64), err error) {
	l, err := net.Listen("tcp", *addr)
	if err != nil {
		return nil, err
	}
	counted := &counter{Listener: l}
	server := &http.Server{Handler: page, ConnState: hook}
	go func() { log.Fatal(server.Serve(counted)) }()
	begin := time.Now()
	return func() (samples, bytes float64) {
		return time.Since(begin).Seconds() * float64(*resources*len(metrics)), float64(counted.bytes.Load())
	}, nil
}

// counter counts the written bytes.
type counter struct {
	net.Listener
	bytes atomic.Int64
}

func (l *counter) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return &counted{c, l}, err
}

type counted struct {
	net.Conn
	listener *counter
}

func (c *counted) Write(b []byte) (n int, err error) {
	n, err = c.Conn.Write(b)
	c.listener.bytes.Add(int64(n))
	return n, err
}

// load calls the resources, some more often than others.
func load(c *collector.Collector) {
	all := make([]*collector.Resource, *resources)
	for i := range all {
		all[i] = c.Resource(fmt.Sprintf("GET /api/v1/customers/{customer}/orders/{order}/items/%04d", i))
		all[i].Block("first") // the first block registers the resource
	}
	const slice = 10 * time.Millisecond
	tick := time.NewTicker(slice)
	for range tick.C {
		for range *resources * *calls / int(time.Second/slice) {
			r := all[min(rand.N(len(all)), rand.N(len(all)))]
			e := r.Enter()
			go func() {
				time.Sleep(rand.N(20 * time.Millisecond))
				e.Exit(nil)
			}()
		}
	}
}
