package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
)

// pausedRun is the duration of [TestPaused], unless $WINDOWSTAT_E2E_PAUSED sets another one.
const pausedRun = 2 * time.Minute

// TestPaused stops servers periodically, at arbitrary points of their work. Their scrapes may take as long as their
// interval. The next scrape therefore follows a scrape that timed out immediately, possibly before its connection has
// ended.
func TestPaused(t *testing.T) {
	t.Parallel()
	run := pausedRun
	if s := os.Getenv("WINDOWSTAT_E2E_PAUSED"); s != "" {
		var err error
		if run, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
	}
	var resources []string
	for i := range 400 { // a page that takes a server some time
		resources = append(resources, fmt.Sprintf("GET /api/v1/customers/{customer}/orders/{order}/items/%04d", i))
	}
	p := newPaced(t, time.Now(), resources, collector.Options{})
	made := newLedger(p)
	seconds, err := prom.NewSeconds(p.stats, prom.SecondsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l := listen(t, "127.0.0.1:0")
	serve(t, slow{seconds}, l, seconds.ConnState)
	j := job{
		name: "paused", path: secondsPath, targets: []string{l.Addr().String()},
		interval: 2 * time.Second, timeout: 2 * time.Second,
	}
	servers := []*server{
		prepareServer(t, "prometheus-3", prometheus3, j), prepareServer(t, "prometheus-2", prometheus2, j),
		prepareServer(t, "victoria", victoria, j),
	}
	servers[2].args = append(servers[2].args, "-dedup.minScrapeInterval=1ms") // for samples that are sent twice
	until := time.Now().Add(run)
	var standing sync.WaitGroup
	for _, s := range servers {
		s.start(t)
		standing.Go(func() { s.standStill(until) })
	}
	p.live(func() bool { return time.Now().Before(until) })
	ended := p.start(t)
	standing.Wait()
	ended()

	deadline := time.Now().Add(catchUp)
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			await(t, s, `windowstat_persecond_pass{resource=~".*/0000"}`, p.second, deadline)
			made.check(t, s, "windowstat_persecond_pass", p.second, func(c count) int { return c.pass })
			made.check(t, s, "windowstat_persecond_block", p.second, func(c count) int { return c.block })
			of := s.counted(p.stats)
			t.Logf("%v seconds were sent again, %v are unconfirmed, %v lost",
				of["cursor_resent_seconds_total"], of["cursor_unconfirmed_seconds_total"],
				of["cursor_lost_seconds_total"])
			if of["cursor_resent_seconds_total"] == 0 {
				t.Error("nothing was sent again: nothing is shown")
			}
			if of["cursor_unconfirmed_seconds_total"] != 0 || of["cursor_lost_seconds_total"] != 0 {
				t.Error("no second should be unconfirmed or lost")
			}
		})
	}
}

// slow is a page whose responses take time to end. A server that is stopped is therefore often in the middle of a
// scrape.
type slow struct{ page http.Handler }

func (x slow) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x.page.ServeHTTP(w, r)
	time.Sleep(rand.N(1950 * time.Millisecond))
}

// standStill stops the process for some seconds, repeatedly.
func (s *server) standStill(until time.Time) {
	for time.Now().Before(until) {
		time.Sleep(time.Second + rand.N(4*time.Second))
		_ = s.process.Process.Signal(syscall.SIGSTOP)
		time.Sleep(300*time.Millisecond + rand.N(4*time.Second))
		_ = s.process.Process.Signal(syscall.SIGCONT)
	}
}
