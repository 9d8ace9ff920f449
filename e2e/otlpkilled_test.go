package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// Paths at which the servers accept OTLP.
const (
	otlpToPrometheus = "/api/v1/otlp/v1/metrics"
	otlpToVictoria   = "/opentelemetry/v1/metrics"
)

// TestOTLPOutage pushes from a service by OTLP and by remote write 2.0. The servers are down for a time, proxies fail
// before and after the server has stored a request, and the service is killed, also during the outages of the servers.
// In the end each server has every second of the metric log once, and sums that grow by the passes of each second. The
// server that accepts deltas has the delta of every second.
func TestOTLPOutage(t *testing.T) {
	t.Parallel()
	c := &child{dir: t.TempDir(), addr: freeAddress(t)}
	var proxies []*weather
	var away atomic.Bool
	pushTo := func(s *server, path string) {
		x := &weather{bad: func(n int64, w http.ResponseWriter, r *http.Request, forward func(http.ResponseWriter)) {
			if away.Load() {
				panic(http.ErrAbortHandler)
			}
			stormy(n, w, r, forward)
		}}
		c.push += " http://" + through(t, s, x).addr + path
		proxies = append(proxies, x)
	}
	start := func(name string, p program, path string, args ...string) *server {
		s := prepareServer(t, name, p)
		s.args = append(s.args, args...)
		s.start(t)
		pushTo(s, path)
		return s
	}
	prometheus := start("prometheus-3", prometheus3, otlpToPrometheus, "--web.enable-otlp-receiver")
	deltas := start("prometheus-3-deltas", prometheus3, otlpToPrometheus+wantsDeltas, "--web.enable-otlp-receiver",
		"--enable-feature=otlp-native-delta-ingestion")
	vm := start("victoria", victoria, otlpToVictoria,
		"-dedup.minScrapeInterval=1ms",                                             // for samples that are sent twice
		"-opentelemetry.ignoreResourceAttributes=service.name,service.instance.id") // for equal labels
	pushTo(prometheus, "/api/v1/write"+wantsVersion2)
	pushTo(vm, "/api/v1/write"+wantsVersion2) // falls back to version 1.0
	t.Cleanup(c.kill)
	var killed []int64
	kill := func() {
		c.kill()
		killed = append(killed, time.Now().Unix())
		time.Sleep(rand.N(1500 * time.Millisecond))
	}
	c.start(t)
	time.Sleep(8 * time.Second)
	kill()
	c.start(t)
	time.Sleep(3 * time.Second)
	away.Store(true)
	time.Sleep(6 * time.Second)
	kill()
	c.start(t)
	vm.end(syscall.SIGTERM) // it writes its data to the disk
	prometheus.end(syscall.SIGKILL)
	time.Sleep(6 * time.Second)
	vm.start(t)
	prometheus.start(t)
	away.Store(false)
	time.Sleep(6 * time.Second)
	for _, x := range proxies {
		x.clear.Store(true)
	}
	time.Sleep(6 * time.Second)
	end := time.Now().Unix() - 1
	c.awaitLogged(t, end)
	rows := c.rows(t, end, 25)
	deadline := time.Now().Add(catchUp)
	for _, x := range []struct {
		s   *server
		job string
	}{{prometheus, otlpJob}, {deltas, otlpDeltaJob}, {vm, otlpJob}, {prometheus, version2Job}, {vm, version2Job}} {
		s, of := x.s, job{name: x.job}
		t.Run(s.name+"/"+x.job, func(t *testing.T) {
			await(t, s, fmt.Sprintf(`windowstat_persecond_pass{job=%q,resource="steady"}`, of.name), end, deadline)
			samples := 0
			for _, f := range fields {
				samples += checkPushed(t, s, of, f, rows, killed, end)
			}
			if s == deltas {
				samples += checkDeltas(t, s, of, rows, killed, end)
			} else {
				samples += checkTotals(t, s, of, rows, killed)
			}
			for _, x := range s.query(t, fmt.Sprintf(`windowstat_persecond_run{job=%q}`, of.name)) {
				if len(x.Metric) != 3 || x.Metric["instance"] != c.addr {
					t.Errorf("the labels are %v", x.Metric)
				}
			}
			t.Logf("%d samples", samples)
		})
	}
}

// checkDeltas compares the deltas of single seconds with the rows of the log. The time of each delta is the end of its
// second.
func checkDeltas(t *testing.T, s *server, of job, rows []metriclog.Row, killed []int64, end int64) int {
	t.Helper()
	var ends []metriclog.Row
	for _, row := range rows {
		row.Start = row.Start.Add(time.Second)
		ends = append(ends, row)
	}
	for _, k := range killed {
		killed = append(killed, k+1)
	}
	pass := fields[0]
	pass.metric += "_total"
	return checkPushed(t, s, of, pass, ends, killed, end+1)
}

// checkTotals compares the growth of a sum in each second, whose sample has the time of the end of the second, with the
// rows of the log. It omits seconds in which a process began, because the sum restarts with each process.
func checkTotals(t *testing.T, s *server, of job, rows []metriclog.Row, killed []int64) (n int) {
	t.Helper()
	logged := map[string]map[int64]int64{}
	for _, row := range rows {
		if logged[row.Resource] == nil {
			logged[row.Resource] = map[int64]int64{}
		}
		logged[row.Resource][row.Start.Unix()] = row.Pass
	}
	begins := func(second int64) bool {
		for _, k := range killed {
			if second >= k-1 && second <= k+3 {
				return true
			}
		}
		return false
	}
	for _, x := range s.query(t, fmt.Sprintf(`windowstat_persecond_pass_total{job=%q}[30m]`, of.name)) {
		for i, v := range x.Values[min(1, len(x.Values)):] {
			before := x.Values[i]
			second := before.at / 1000
			if v.at-before.at != 1000 || begins(second) || logged[x.Metric["resource"]] == nil {
				continue
			}
			pass, ok := logged[x.Metric["resource"]][second]
			if n++; ok && v.value-before.value != float64(pass) {
				t.Errorf("%s: %s grows by %v in second %d, in which %d passed", s.name, x.Metric["resource"],
					v.value-before.value, second, pass)
			}
		}
	}
	if n < 20 {
		t.Errorf("%s: sums of %d seconds are too few", s.name, n)
	}
	return n
}
