package e2e

import (
	"maps"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
)

// TestBehindNginx runs a server that reads a page through nginx with the documented configuration. Data that nginx has
// read must not count as delivered to the server.
func TestBehindNginx(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/seconds.md")
	if err != nil {
		t.Fatal(err)
	}
	_, documented, ok := strings.Cut(string(page), "```nginx\n")
	documented, _, closed := strings.Cut(documented, "```")
	if !ok || !closed {
		t.Fatal("there is no block for nginx")
	}
	p := newPaced(t, time.Now(), []string{"r0000"}, collector.Options{})
	newLedger(p)
	seconds, err := prom.NewSeconds(p.stats, prom.SecondsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l := listen(t, "127.0.0.1:0")
	serve(t, seconds, l, seconds.ConnState)

	addr := startNginx(t, strings.Replace(documented, "http://shop:9719", "http://"+l.Addr().String(), 1))
	s := startServer(t, "prometheus-3", prometheus3,
		job{name: "nginx", path: secondsPath, targets: []string{addr}, interval: time.Second, timeout: time.Second})
	delivered := func() (of map[string]float64) {
		for of = s.counted(p.stats); ; { // until no scrape happens between the two reads
			again := s.counted(p.stats)
			if maps.Equal(of, again) {
				return of
			}
			of = again
		}
	}
	deadline := time.Now().Add(catchUp)
	p.live(func() bool { return delivered()["cursor_unconfirmed_seconds_total"] < 8 && time.Now().Before(deadline) })

	of := delivered()
	t.Logf("%v seconds are delivered, %v unconfirmed", of["cursor_delivered_seconds_total"],
		of["cursor_unconfirmed_seconds_total"])
	if n := of["cursor_unconfirmed_seconds_total"]; n < 5 || n != of["cursor_delivered_seconds_total"] {
		t.Error("data that only a proxy has read counts as delivered")
	}
}
