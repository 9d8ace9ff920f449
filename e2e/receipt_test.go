package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
)

// receiptRun is the duration of [TestReceipts], unless $WINDOWSTAT_E2E_PAUSED sets another one.
const receiptRun = 90 * time.Second

// TestReceipts has servers scrape four targets of one job at one address, over TLS. The targets share connections, so a
// scrape often uses another connection than the previous scrape of its target. Some responses end after the timeout,
// and servers are stopped periodically. Each second is in each database once.
func TestReceipts(t *testing.T) {
	t.Parallel()
	run := receiptRun
	if s := os.Getenv("WINDOWSTAT_E2E_PAUSED"); s != "" {
		var err error
		if run, err = time.ParseDuration(s); err != nil {
			t.Fatal(err)
		}
	}
	resources := []string{"r0000", "r0050", "r0100", "r0150"}
	p := newPaced(t, time.Now(), resources, collector.Options{})
	made := newLedger(p)
	type consumer struct {
		*server         // the scraper
		to      *server // has the samples

		responses atomic.Int64
	}
	var consumers []*consumer
	add := func(name string, program program, to *server) {
		c := &consumer{to: to}
		page, err := prom.NewSeconds(p.stats, prom.SecondsOptions{})
		if err != nil {
			t.Fatal(err)
		}
		service := httptest.NewUnstartedServer(sometimesLate{page, &c.responses})
		service.Config.ConnState = page.ConnState
		service.StartTLS()
		t.Cleanup(service.Close)
		c.server = newServer(t, name, program.path(t), to != nil || program.name == victoria.name)
		config := c.sharedAddress(service.Listener.Addr().String(), resources)
		if to != nil {
			c.args = []string{
				"-httpListenAddr=" + c.addr, "-promscrape.config=" + c.writeConfig(t, config),
				"-remoteWrite.url=" + writeTo(to), "-remoteWrite.tmpDataPath=" + c.dir + "/data",
			}
		} else {
			c.to = c.server
			c.configure(t, config)
			if c.isVictoria {
				c.args = append(c.args, "-dedup.minScrapeInterval=1ms")
			}
		}
		c.start(t)
		consumers = append(consumers, c)
	}
	add("prometheus-3", prometheus3, nil)
	add("prometheus-2", prometheus2, nil)
	add("victoria", victoria, nil)
	behind := prepareServer(t, "behind", victoria)
	behind.args = append(behind.args, "-dedup.minScrapeInterval=1ms")
	behind.start(t)
	add("vmagent", vmagent, behind)

	until := time.Now().Add(run)
	var standing sync.WaitGroup
	for _, c := range consumers {
		standing.Go(func() { c.standStill(until) })
	}
	p.live(func() bool { return time.Now().Before(until) })
	ended := p.start(t)
	standing.Wait()
	ended()
	deadline := time.Now().Add(catchUp)
	for _, c := range consumers {
		t.Run(c.name, func(t *testing.T) {
			for _, r := range resources {
				await(t, c.to, fmt.Sprintf(`windowstat_persecond_pass{resource=%q}`, r), p.second, deadline)
			}
			made.check(t, c.to, "windowstat_persecond_pass", p.second, func(c count) int { return c.pass })
			made.check(t, c.to, "windowstat_persecond_block", p.second, func(c count) int { return c.block })
			of := c.counted(p.stats)
			t.Logf("%d responses: %v seconds were delivered, %v sent again, %v samples of them twice, %v are "+
				"unconfirmed, %v lost",
				c.responses.Load(), of["cursor_delivered_seconds_total"], of["cursor_resent_seconds_total"],
				refused(t, c.to), of["cursor_unconfirmed_seconds_total"], of["cursor_lost_seconds_total"])
			if of["cursor_resent_seconds_total"] == 0 || of["cursor_unconfirmed_seconds_total"] != 0 ||
				of["cursor_lost_seconds_total"] != 0 {
				t.Error("some seconds should be sent again, and none unconfirmed or lost")
			}
		})
	}
}

// sharedAddress returns the configuration of one job with a target for each resource, all at one address.
func (s *server) sharedAddress(addr string, resources []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "scrape_configs:\n- job_name: receipts\n  metrics_path: /\n  scheme: https\n"+
		"  tls_config: {insecure_skip_verify: true}\n")
	fmt.Fprintf(&b, "  scrape_interval: 3s\n  scrape_timeout: 2s\n  honor_timestamps: true\n  static_configs:\n")
	for i, r := range resources {
		fmt.Fprintf(&b,
			"  - {targets: ['%s'], labels: {__param_cursor: '%s:%d', __param_resource: '%s', part: '%d'}}\n", addr,
			s.name, i, r, i)
	}
	if s.isVictoria {
		b.WriteString("  no_stale_markers: true\n")
	}
	return b.String()
}

// sometimesLate is a page that delays the end of some responses until a scrape with a timeout of two seconds has
// failed.
type sometimesLate struct {
	page      http.Handler
	responses *atomic.Int64
}

func (x sometimesLate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x.responses.Add(1)
	x.page.ServeHTTP(w, r)
	switch rand.N(8) {
	case 0:
		_ = http.NewResponseController(w).Flush()
		time.Sleep(1900*time.Millisecond + rand.N(300*time.Millisecond))
	case 1, 2:
		time.Sleep(rand.N(1500 * time.Millisecond))
	}
}
