package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/node"
)

const (
	outageResources = 1000
	outageSeconds   = 600
	// By default a page has at most half a million samples. It has fewer for a scrape that times out in four seconds
	// instead of ten. With two metrics of all resources, half a million samples are a hundred seconds. With names of
	// this length they have some 23 MB before compression. VictoriaMetrics does not accept this size, so its pages are
	// smaller.
	outageSamples = prom.DefaultMaxSamples * 4 / 10
)

// TestLongOutage runs a service with a thousand resources. No server reads the service for ten minutes, which pass in
// fast motion. Then the servers must catch up in several responses, and must not lack a second.
func TestLongOutage(t *testing.T) {
	t.Parallel()
	var resources []string
	for i := range outageResources {
		resources = append(resources, fmt.Sprintf("GET /api/v1/customers/{customer}/orders/{order}/items/%04d", i))
	}
	// The run begins ten minutes ago, and reaches the current time when the outage ends.
	begin := time.Now().Add(-outageSeconds * time.Second)
	p := newPaced(t, begin, resources, collector.Options{Windows: node.Options{History: 15 * time.Minute}})
	made := newLedger(p)
	seconds, err := prom.NewSeconds(p.stats, prom.SecondsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	page := &closable{page: seconds, answered: map[string]int{}}
	l := listen(t, "127.0.0.1:0")
	serve(t, page, l, seconds.ConnState)
	servers := startServers(t, job{
		name: "outage", path: secondsPath, targets: []string{l.Addr().String()}, interval: 5 * time.Second,
		metrics: []string{"persecond_pass", "persecond_block"},
	})

	until := time.Now().Add(catchUp)
	p.live(func() bool { return page.least(len(servers)) < 2 && time.Now().Before(until) })
	if n := page.least(len(servers)); n < 2 {
		t.Fatalf("a server has read only %d pages", n)
	}
	page.closed.Store(true)
	from := time.Now()
	for range outageSeconds {
		p.tick()
	}
	t.Logf("ten minutes took %v", time.Since(from).Round(10*time.Millisecond))
	page.closed.Store(false)
	opened := time.Now()
	until = time.Now().Add(time.Minute)
	p.live(func() bool { return time.Now().Before(until) })

	deadline := time.Now().Add(2 * catchUp)
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			await(t, s, `windowstat_persecond_pass{resource=~".*/0000"}`, p.second, deadline)
			made.check(t, s, "windowstat_persecond_pass", p.second, func(c count) int { return c.pass })
			made.check(t, s, "windowstat_persecond_block", p.second, func(c count) int { return c.block })
			checkAnswers(t, s, opened)
			checkCounters(t, s)
		})
	}
}

// checkAnswers checks the number of samples that the server found in each scrape since the page was reopened.
func checkAnswers(t *testing.T, s *server, opened time.Time) {
	t.Helper()
	var sizes []int
	for _, x := range s.query(t, `scrape_samples_scraped[20m]`) {
		for _, v := range x.Values {
			sizes = append(sizes, int(v.value))
		}
	}
	big := 0
	for _, n := range sizes {
		if n > outageSamples/3 {
			big++
		}
	}
	t.Logf("%s caught up in %d big answers; samples of each scrape: %d", s.name, big, sizes)
	if most := slices.Max(sizes); most > outageSamples {
		t.Errorf("an answer has %d samples; there should be at most %d", most, outageSamples)
	}
	// After a response that did not arrive in time, as on a busy machine, the next responses are smaller.
	failed := slices.ContainsFunc(s.query(t, `up[20m]`), func(x series) bool {
		return slices.ContainsFunc(x.Values, func(v sample) bool { return v.value == 0 && v.at > opened.UnixMilli() })
	})
	if least := outageSeconds*2*outageResources/outageSamples - 1; big < least && !failed {
		t.Errorf("there are %d big answers; there should be at least %d", big, least)
	}
}

// closable is a page that can be closed for a while.
type closable struct {
	page   http.Handler
	closed atomic.Bool

	mu       sync.Mutex
	answered map[string]int // by cursor
}

func (c *closable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c.closed.Load() {
		http.Error(w, "closed", http.StatusServiceUnavailable)
		return
	}
	c.page.ServeHTTP(w, r)
	c.mu.Lock()
	defer c.mu.Unlock()
	server, _, _ := strings.Cut(r.URL.Query().Get("cursor"), ":")
	c.answered[server]++
}

// least returns the lowest number of responses of any of the given servers.
func (c *closable) least(servers int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.answered) < servers {
		return 0
	}
	least := -1
	for _, n := range c.answered {
		if least < 0 || n < least {
			least = n
		}
	}
	return least
}
