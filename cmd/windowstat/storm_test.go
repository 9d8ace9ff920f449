package main

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/routes"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
	"github.com/windowstat/windowstat/exporter"
)

var stormSize = flag.Int("storm", 50_000, "how many requests TestStorm sends with made-up paths")

// Limits of the test: growth of the heap after the first fifth of the requests, size of a page in bytes, and number of
// resources.
const (
	stormHeap      = 8 << 20
	stormPage      = 512 << 10
	stormResources = 100
)

// storm generates random requests of several hosts.
type storm struct {
	*rand.Rand
	sent int
}

// request returns a random request. Its path has one to four words, and sometimes invalid or very long parts.
func (s *storm) request() *http.Request {
	s.sent++
	word := func() string {
		b := make([]byte, 3+s.IntN(10))
		for i := range b {
			b[i] = 'a' + byte(s.IntN(26))
		}
		return string(b)
	}
	path := ""
	for range 1 + s.IntN(4) {
		path += "/" + word()
	}
	switch s.IntN(50) {
	case 0:
		path += "/" + strings.Repeat(word(), 800) // about 8 kB
	case 1:
		path += "/\xff\xfe" + word()
	case 2:
		path += "/a/" + word() + ".php"
	case 3:
		path = "/../" + path + "/./|\n"
	}
	r := httptest.NewRequest("GET", "/", nil)
	r.URL = &url.URL{Path: path, RawPath: strings.ReplaceAll(path, "/a/", "%2Fa%2f")}
	if r.Method = []string{"GET", "POST", "HEAD", "PUT"}[s.IntN(4)]; s.IntN(20) == 0 {
		r.Method = strings.ToUpper(word())
	}
	r.RemoteAddr = fmt.Sprintf("203.0.113.%d:4711", s.IntN(8))
	if s.IntN(2) == 0 {
		r.RemoteAddr = fmt.Sprintf("[2001:db8:0:%x::%x]:4711", s.IntN(8), s.Uint32())
	}
	return r
}

// Regression: random paths filled the table, all calls of the checkout counted for _other, and a page had 1.8 MB. The
// test sends random requests of several hosts to services that respond to everything with 200, 302 or 404. Counts of
// routes are exact, a real path without a route has a series within ten calls, memory and pages stay small, and each
// scrape, every five seconds, succeeds and has all seconds.
func TestStorm(t *testing.T) {
	for _, status := range []int{http.StatusOK, http.StatusFound, http.StatusNotFound} {
		t.Run(fmt.Sprint(status), func(t *testing.T) { testStorm(t, status) })
	}
}

func testStorm(t *testing.T, status int) {
	var now atomic.Int64
	now.Store(1_700_000_000 * int64(time.Second))
	clock := func() time.Time { return time.Unix(0, now.Load()) }
	naming := routes.Naming{
		Patterns:  []string{"POST /checkout", "GET /users/{id}"},
		Depth:     httpstat.DefaultDepth,
		MaxValues: httpstat.DefaultMaxValues,
	}
	if err := naming.Check(); err != nil {
		t.Fatal(err)
	}
	earned := naming.Earned()
	earned.Now = clock
	names, err := httpstat.NewNames(earned)
	if err != nil {
		t.Fatal(err)
	}
	x, err := exporter.New(
		exporter.Options{Collector: collector.Options{Given: naming.Given(), MaxResources: 1000, Now: clock}},
	)
	if err != nil {
		t.Fatal(err)
	}
	real := func(r *http.Request) bool {
		return r.URL.Path == "/checkout" || r.URL.Path == "/real" || r.URL.Path == "/users/jane"
	}
	upstream := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now.Add(int64(10 * time.Microsecond))
		if !real(r) {
			w.WriteHeader(status)
		}
	})
	front := httpstat.Handler(x.Collector, naming.Name(), upstream, httpstat.Earn(names))
	send := func(r *http.Request) { front.ServeHTTP(httptest.NewRecorder(), r) }
	heap := func() int64 {
		runtime.GC()
		runtime.GC() // the second run frees pooled objects
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	page := func(path string) string {
		w := httptest.NewRecorder()
		x.Handler().ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != http.StatusOK || w.Body.Len() > stormPage {
			t.Fatalf("%s: %d, %d bytes", path, w.Code, w.Body.Len())
		}
		return w.Body.String()
	}
	perSecond := regexp.MustCompile(`(?m)^windowstat_persecond_pass\{resource="POST /checkout"\} (\d+) (\d+)$`)
	delivered := map[string]int{}
	largest := 0
	scrape := func() string {
		seconds := page("/metrics/seconds?cursor=storm")
		for _, m := range perSecond.FindAllStringSubmatch(seconds, -1) {
			if n, _ := strconv.Atoi(m[1]); delivered[m[2]] == 0 {
				delivered[strings.Clone(m[2])] = n
			} else {
				t.Errorf("second %s is delivered twice", m[2])
			}
		}
		all := page("/metrics")
		largest = max(largest, len(all), len(seconds))
		return all
	}
	page("/metrics/seconds?cursor=storm")

	s := &storm{Rand: rand.New(rand.NewPCG(1, uint64(status)))}
	checkouts, reals, users := 0, 0, 0
	var before int64
	for s.sent < *stormSize {
		send(s.request())
		if s.sent%1000 == 3 { // a burst, which begins with the first call of the service
			for range 7 {
				checkouts++
				send(httptest.NewRequest("POST", "/checkout", nil))
			}
			users++
			send(httptest.NewRequest("GET", "/users/jane", nil))
		}
		if s.sent > *stormSize/2 && s.sent%100 == 0 && reals < 10 {
			reals++
			send(httptest.NewRequest("GET", "/real", nil))
			if reals == 10 {
				scrapeSeries(t, page("/metrics"), "GET /real")
			}
		}
		if s.sent%1000 == 999 {
			now.Store((now.Load()/int64(time.Second) + 1) * int64(time.Second))
			if s.sent%5000 == 4999 {
				scrape()
			}
		}
		if s.sent == *stormSize/5 {
			before = heap()
		}
	}
	now.Store((now.Load()/int64(time.Second) + 1) * int64(time.Second))
	last := scrape()
	if grown := heap() - before; grown > stormHeap {
		t.Errorf("the heap has grown by %d bytes", grown)
	}
	for _, line := range []string{
		fmt.Sprintf(`windowstat_pass_total{resource="POST /checkout"} %d`, checkouts),
		fmt.Sprintf(`windowstat_pass_total{resource="GET /users/{id}"} %d`, users),
		fmt.Sprintf(`windowstat_inbound_pass_total %d`, s.sent+checkouts+reals+users),
		`windowstat_overflow_events_total 0`,
	} {
		if !strings.Contains(last, line+"\n") {
			t.Errorf("no %q on the page", line)
		}
	}
	ended := 0 // calls with any code
	for _, m := range regexp.MustCompile(`(?m)^windowstat_inbound_complete_total\S* `+
		`(\d+)$`).FindAllStringSubmatch(last, -1) {
		n, _ := strconv.Atoi(m[1])
		ended += n
	}
	if all := s.sent + checkouts + reals + users; ended != all {
		t.Errorf("%d of %d calls ended", ended, all)
	}
	sum := 0
	for _, n := range delivered {
		sum += n
	}
	if sum != checkouts {
		t.Errorf("%d of %d checkouts were delivered by seconds", sum, checkouts)
	}
	resources := strings.Count(last, "windowstat_pass_total{")
	if resources > stormResources || status != http.StatusOK && resources != 4 {
		t.Errorf("%d resources", resources)
	}
	t.Logf("%d resources, the largest page has %d bytes, the heap has grown by %d", resources, largest, heap()-before)
	runtime.KeepAlive(x)
}

// scrapeSeries fails if the page has no series of the resource with at least one call.
func scrapeSeries(t *testing.T, page, resource string) {
	t.Helper()
	if !regexp.MustCompile(`(?m)^windowstat_pass_total\{resource="` + regexp.QuoteMeta(resource) + `"\} [1-9]`).
		MatchString(page) {
		t.Errorf("%s has no series after ten calls", resource)
	}
}
