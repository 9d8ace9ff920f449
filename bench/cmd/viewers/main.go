// Command viewers measures what it costs that people look at the live page: what they load at first, what is sent to each
// of them in a second, what the process uses for all of them, and what a call takes while they look. It prints one line in
// the format of Go benchmarks.
//
// The viewers are another process, so that what reading costs is not counted. With and without them take turns.
package main

import (
	"flag"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/live"
)

var (
	viewers   = flag.Int("viewers", 200, "how many look")
	resources = flag.Int("resources", 50, "how many there are")
	calls     = flag.Int("calls", 100, "of each resource in a second")
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
	if err != nil {
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

	var with, without slots
	for range max(1, int(*length/(2*slot))) {
		without = append(without, use(c, l))
		leave, err := enter("http://" + l.Addr().String() + "/")
		if err != nil {
			return err
		}
		with = append(with, use(c, l))
		if err := leave(); err != nil {
			return err
		}
	}
	kind := "gzip"
	if *plain {
		kind = "plain"
	}
	fmt.Printf("BenchmarkLive/%s/%d-resources/%d-viewers-%d %d %d first-B %.0f B/s/viewer %.3f core-percent %.3f other-core-percent %.1f ns/op %.1f other-ns/op %.3f ratio\n",
		kind, *resources, *viewers, runtime.GOMAXPROCS(0), len(with), first,
		with.median(without, func(x, _ used) float64 { return x.bytes / float64(*viewers) }),
		with.median(without, func(x, y used) float64 { return 100 * (x.cores - y.cores) }),
		without.median(with, func(x, _ used) float64 { return 100 * x.cores }),
		with.median(without, func(x, _ used) float64 { return x.call }),
		without.median(with, func(x, _ used) float64 { return x.call }),
		with.median(without, func(x, y used) float64 { return x.call / y.call }))
	return nil
}

// part finds what a page loads.
var part = regexp.MustCompile(`(?:src|href)="([\w.]+)"`)

// firstLoad is how many bytes the page has with all that it loads, zipped.
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
