package e2e

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
)

// timeoutRun is the duration of the calls in [TestTimeout].
const timeoutRun = 70 * time.Second

// TestTimeout has scrapes time out after the whole page except its end was sent. The server has received all samples,
// and discards them. The service must send them again.
func TestTimeout(t *testing.T) {
	t.Parallel()
	p := newPaced(t, time.Now(), []string{"r0000", "r0050", "r0051"}, collector.Options{})
	made := newLedger(p)
	seconds, err := prom.NewSeconds(p.stats, prom.SecondsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	page := &late{page: seconds, asked: map[string]int{}}
	l := listen(t, "127.0.0.1:0")
	serve(t, page, l, seconds.ConnState)
	servers := startServers(t, job{
		name: "timeout", path: secondsPath, targets: []string{l.Addr().String()},
		interval: 3 * time.Second, timeout: 2 * time.Second,
	})
	// The service resends some seconds to each server, even if a busy machine makes only a few scrapes.
	again := func() bool {
		return !slices.ContainsFunc(servers,
			func(s *server) bool { return s.counted(p.stats)["cursor_resent_seconds_total"] < 9 })
	}
	until, last := time.Now().Add(timeoutRun), time.Now().Add(timeoutRun+catchUp)
	p.live(func() bool { return time.Now().Before(until) || !again() && time.Now().Before(last) })

	deadline := time.Now().Add(catchUp)
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			await(t, s, `windowstat_persecond_pass{resource="r0000"}`, p.second, deadline)
			made.check(t, s, "windowstat_persecond_pass", p.second, func(c count) int { return c.pass })
			made.check(t, s, "windowstat_persecond_block", p.second, func(c count) int { return c.block })
			checkResent(t, s, p.stats)
			checkCounters(t, s) // the server had no resent second before
		})
	}
}

// checkResent compares the page's counters for a server with the server's record of its scrapes.
func checkResent(t *testing.T, s *server, c *collector.Collector) {
	t.Helper()
	failed := 0
	for _, x := range s.query(t, `up{job="timeout"}[5m]`) {
		for _, v := range x.Values {
			if v.value == 0 {
				failed++
			}
		}
	}
	of := s.counted(c)
	t.Logf("%d scrapes timed out; %v seconds were sent again, %v are unconfirmed, %v lost", failed,
		of["cursor_resent_seconds_total"], of["cursor_unconfirmed_seconds_total"], of["cursor_lost_seconds_total"])
	if failed < 3 || of["cursor_resent_seconds_total"] < 3 {
		t.Error("those are too few: nothing is shown")
	}
	if of["cursor_unconfirmed_seconds_total"] != 0 || of["cursor_lost_seconds_total"] != 0 {
		t.Error("no second should be unconfirmed or lost")
	}
}

// counted returns the sum of a page's counters for the server whose name begins the names of its cursors.
func (s *server) counted(c *collector.Collector) map[string]float64 {
	return s.countedFor(c, s.name+":")
}

// countedFor adds up the metrics of the cursors whose names, each followed by a bracket, have a prefix.
func (s *server) countedFor(c *collector.Collector, prefix string) map[string]float64 {
	of := map[string]float64{}
	for _, m := range c.Metrics() {
		m.Each(func(value float64, labels ...string) {
			if strings.HasPrefix(fmt.Sprint(labels), "[127.0.0.1 "+prefix) {
				of[m.Name] += value
			}
		})
	}
	return of
}

// late is a page that delays the end of every fifth response to a scraper until the scrape has timed out.
type late struct {
	page http.Handler

	mu    sync.Mutex
	asked map[string]int // by cursor
}

func (x *late) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x.mu.Lock()
	cursor := r.URL.Query().Get("cursor")
	x.asked[cursor]++
	isLate := x.asked[cursor]%5 == 0
	x.mu.Unlock()
	x.page.ServeHTTP(w, r)
	if !isLate {
		return
	}
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done() // the client has hung up
}
