// Command viewers measures the cost of viewers of the live page: the size of the initial load, the bytes per second for
// each viewer, the process's usage for all viewers, and the time of a call while viewers are connected. It prints one
// line in the format of Go benchmarks.
//
// The viewers run in another process, so the cost of reading does not count. The usage of the process is measured with
// and without viewers, in turns. The calls take turns with calls of a collector without viewers, in the same process.
package main

import (
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"time"

	"github.com/windowstat/windowstat/bench"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/live"
)

var (
	viewers   = flag.Int("viewers", 100, "how many look")
	resources = flag.Int("resources", 1000, "how many there are")
	rate      = flag.Int("calls", 10, "of each resource in a second")
	length    = flag.Duration("time", 2*time.Minute, "how long to measure; in half of it nobody looks")
	plain     = flag.Bool("plain", false, "viewers do not take gzip")
	look      = flag.String("look", "", "be the viewers of this `URL`, until standard input ends")
)

func main() {
	flag.Parse()
	run := measure
	if *look != "" {
		run = view
	}
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func measure() error {
	c, err := collector.New(collector.Options{})
	alone, err2 := collector.New(collector.Options{}) // without viewers
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	page, err := live.New(c, live.Options{})
	if err != nil {
		return err
	}
	first, err := firstLoad(page)
	if err != nil {
		return err
	}
	l, err := listen()
	if err != nil {
		return err
	}
	go func() { log.Fatal(http.Serve(l, page)) }()
	go load(c)
	go load(alone)

	var cores, without, bytes []float64
	var call calls
	name := bench.Names(1)[0]
	for range max(1, int(*length/(2*slot))) {
		before := use(l)
		leave, err := enter("http://" + l.Addr().String() + "/")
		if err != nil {
			return err
		}
		with := use(l)
		call.measure(c.Resource(name), alone.Resource(name), slot/3)
		if err := leave(); err != nil {
			return err
		}
		cores, without = append(cores, with.cores-before.cores), append(without, before.cores)
		bytes = append(bytes, with.bytes/float64(*viewers))
	}
	kind := "gzip"
	if *plain {
		kind = "plain"
	}
	fmt.Printf("BenchmarkLive/%s/%d-resources/%d-viewers-%d %d %d first-B %.0f B/s/viewer %.3f core-percent %.3f "+
		"other-core-percent %.1f ns/op %.1f other-ns/op %.3f ratio\n",
		kind, *resources, *viewers, runtime.GOMAXPROCS(0), len(cores), first, median(bytes),
		100*median(cores), 100*median(without),
		median(call.ours), median(call.other), median(call.ratio))
	return nil
}

// part matches the files that a page loads.
var part = regexp.MustCompile(`(?:src|href)="([\w.]+)"`)

// firstLoad returns the compressed size in bytes of the page and all files that it loads.
func firstLoad(page http.Handler) (sum int, err error) {
	get := func(name, encoding string) ([]byte, error) {
		r := httptest.NewRequest(http.MethodGet, "/"+name, nil)
		r.Header.Set("Accept-Encoding", encoding)
		w := httptest.NewRecorder()
		if page.ServeHTTP(w, r); w.Code != http.StatusOK {
			return nil, fmt.Errorf("%s: status %d", name, w.Code)
		}
		return w.Body.Bytes(), nil
	}
	index, err := get("", "")
	if err != nil {
		return 0, err
	}
	names := []string{""}
	for _, m := range part.FindAllSubmatch(index, -1) {
		names = append(names, string(m[1]))
	}
	for _, name := range names {
		b, err := get(name, "gzip")
		if err != nil {
			return 0, err
		}
		sum += len(b)
	}
	return sum, nil
}
