package e2e

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
)

// TestReload changes a label of a target four times. Every second is in the database under one of the labels. Only the
// seconds of the last response before a reload are under both labels in a Prometheus 2, which closes its connections on
// a reload.
func TestReload(t *testing.T) {
	t.Parallel()
	p := newPaced(t, time.Now(), []string{"r0000"}, collector.Options{})
	p.calls = func(int, int64) count { return count{pass: 1} }
	seconds, err := prom.NewSeconds(p.stats, prom.SecondsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l := listen(t, "127.0.0.1:0")
	serve(t, seconds, l, seconds.ConnState)
	j := job{
		name: "reload", path: secondsPath, targets: []string{l.Addr().String()},
		interval: 3 * time.Second, timeout: 2 * time.Second,
	}
	servers := []*server{
		prepareServer(t, "prometheus-3", prometheus3, j), prepareServer(t, "prometheus-2", prometheus2, j),
		prepareServer(t, "victoria", victoria, j),
	}
	servers[2].args = append(servers[2].args, "-dedup.minScrapeInterval=1ms")
	begin := time.Now().Unix() + 1
	const reloads = 4
	for _, s := range servers {
		s.start(t)
	}
	stop := p.start(t)
	// scraped waits until each server has scraped twice with a label.
	scraped := func(part string) {
		t.Helper()
		deadline := time.Now().Add(catchUp)
		for _, s := range servers {
			for len(s.query(t, fmt.Sprintf(`sum_over_time(up{part=%q}[4m]) >= 2`, part))) == 0 {
				if time.Now().After(deadline) {
					t.Fatalf("%s does not scrape with part=%q", s.name, part)
				}
				time.Sleep(200 * time.Millisecond)
			}
		}
	}
	scraped("")
	for n := range reloads {
		time.Sleep(rand.N(3 * time.Second)) // anywhere between two scrapes
		for _, s := range servers {
			config := s.config([]job{j})
			s.writeConfig(t, strings.Replace(config, "']}]\n", fmt.Sprintf("'], labels: {part: 'p%d'}}]\n", n), 1))
			if err := s.process.Process.Signal(syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
		}
		scraped(fmt.Sprint("p", n))
	}
	stop()
	for _, s := range servers {
		await(t, s, `windowstat_persecond_pass{resource="r0000"}`, p.second, time.Now().Add(catchUp))
		at := map[int64]int{}
		parts := s.query(t, `windowstat_persecond_pass{resource="r0000"}[10m]`)
		for _, x := range parts {
			for _, v := range x.Values {
				at[v.at/1000]++
			}
		}
		twice := 0
		for second := begin; second < p.second; second++ {
			if at[second] > 1 {
				twice++
			}
			if at[second] == 0 {
				t.Errorf("%s: second %d is missing", s.name, second)
			}
		}
		failed := 0 // failed scrapes (busy machine) also resend seconds
		for _, x := range s.query(t, `up[10m]`) {
			for _, v := range x.Values {
				if v.value == 0 {
					failed++
				}
			}
		}
		of := s.counted(p.stats)
		t.Logf("%s: %d series, %d seconds twice of %d; %v sent again, %v unconfirmed; %d scrapes failed",
			s.name, len(parts), twice, len(at),
			of["cursor_resent_seconds_total"], of["cursor_unconfirmed_seconds_total"], failed)
		if len(parts) != reloads+1 {
			t.Errorf("%s: %d series, want %d", s.name, len(parts), reloads+1)
		}
		if again := of["cursor_resent_seconds_total"]; float64(twice) > again ||
			again > 0 && s.name != "prometheus-2" && failed == 0 {
			t.Errorf("%s: %d seconds are there twice", s.name, twice)
		}
	}
}
