package e2e

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// restartPause is the time without a service at the second restart.
const restartPause = 7 * time.Second

// TestRestart kills a service under load and starts it again: once immediately, and once after a pause. In the end the
// servers have every row of the metric log exactly once, and nothing else, as far as the rows are not idle.
func TestRestart(t *testing.T) {
	t.Parallel()
	c := &child{dir: t.TempDir(), addr: freeAddress(t)}
	c.start(t)
	t.Cleanup(func() { c.kill() })
	targets := []string{c.addr}
	jobs := []job{
		{name: "restart-2s", path: secondsPath, targets: targets, interval: 2 * time.Second, timeout: time.Second},
		{name: "restart-5s", path: secondsPath, targets: targets, interval: 5 * time.Second},
		{name: "restart-15s", path: secondsPath, targets: targets, interval: 15 * time.Second},
	}
	servers := []*server{
		prepareServer(t, "prometheus-3", prometheus3, jobs...), prepareServer(t, "prometheus-2", prometheus2, jobs...),
		prepareServer(t, "victoria", victoria, jobs...),
	}
	servers[2].args = append(servers[2].args, "-dedup.minScrapeInterval=1ms") // for samples that are sent twice
	for _, s := range servers {
		s.start(t)
	}

	resent := 0.0
	for _, pause := range []time.Duration{0, restartPause} {
		time.Sleep(20 * time.Second)
		resent += c.resent(t) // the next process begins at zero
		c.kill()
		time.Sleep(pause)
		c.start(t)
	}
	time.Sleep(15 * time.Second)
	resent += c.resent(t)
	end := time.Now().Unix() - 1
	c.awaitLogged(t, end)

	rows := c.rows(t, end, 50)
	deadline := time.Now().Add(catchUp)
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			samples := 0
			for _, j := range jobs {
				await(t, s, fmt.Sprintf(`windowstat_persecond_pass{job=%q,resource="steady"}`, j.name), end, deadline)
				for _, f := range fields {
					samples += checkLogged(t, s, j, f, rows, end)
				}
			}
			t.Logf("%d samples", samples)
			// A Prometheus refuses resent samples that it already has.
			if n, most := refused(t, s), resent*float64(len(habits())*secondMetrics()); n > most {
				t.Errorf("%s refused %v samples; with %v seconds that were sent again it should be at most %v", s.name,
					n, resent, most)
			}
		})
	}
	t.Logf("%v seconds were sent again, of all readers", resent)
}

// checkLogged compares a job's samples of one metric with the rows of the log.
func checkLogged(t *testing.T, s *server, j job, f field, rows []metriclog.Row, end int64) int {
	t.Helper()
	return checkRows(t, s, fmt.Sprintf(`%s{job=%q}[10m]`, f.metric, j.name), f, rows, end)
}

// checkRows compares the samples that a range selector selects of a metric with rows of logs. With several logs it uses
// the sum of their rows.
func checkRows(t *testing.T, s *server, selector string, f field, rows []metriclog.Row, end int64) int {
	t.Helper()
	n, wrong := eventually(t, s, selector, end, func() values {
		want := values{}
		for _, row := range rows {
			if want[row.Resource] == nil {
				want[row.Resource] = map[int64]float64{}
			}
			want[row.Resource][row.Start.Unix()] += float64(f.of(row))
		}
		// The log has no row for an idle second. The page has a zero sample for it, but no sample for the time without
		// a process.
		for _, x := range s.query(t, selector) {
			for _, v := range x.Values {
				if seconds := want[x.Metric["resource"]]; seconds != nil && v.value == 0 && v.at/1000 < end {
					seconds[v.at/1000] += 0
				}
			}
		}
		return want
	})
	if len(wrong) > 0 {
		t.Errorf("%s: %s is wrong in %d places:\n%s", s.name, selector, len(wrong),
			strings.Join(wrong[:min(len(wrong), 10)], "\n"))
	}
	return n
}

// awaitLogged waits until the metric log has the second end or a later one, and therefore everything before it. The
// test makes a call in each second.
func (c *child) awaitLogged(t *testing.T, end int64) {
	t.Helper()
	for deadline := time.Now().Add(catchUp); ; time.Sleep(50 * time.Millisecond) {
		rows, err := c.logged()
		if err == nil && slices.ContainsFunc(rows, func(r metriclog.Row) bool { return r.Start.Unix() >= end }) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the log does not come to second %d: %v", end, err)
		}
	}
}

// logged returns the rows of the resources in the metric log.
func (c *child) logged() ([]metriclog.Row, error) {
	files, err := filepath.Glob(filepath.Join(c.dir, "e2e-metrics.log.*"))
	if err != nil {
		return nil, err
	}
	return readLog(slices.DeleteFunc(files, func(path string) bool { return strings.HasSuffix(path, ".idx") }))
}

// rows returns the rows of the resources in the metric log before a second. It requires at least the given number of
// seconds.
func (c *child) rows(t *testing.T, end int64, least int) []metriclog.Row {
	t.Helper()
	all, err := c.logged()
	if err != nil {
		t.Fatal(err)
	}
	var rows []metriclog.Row
	seconds := map[int64]bool{}
	for _, row := range all {
		if row.Start.Unix() < end {
			rows = append(rows, row)
			seconds[row.Start.Unix()] = true
		}
	}
	t.Logf("the log has %d rows of %d seconds", len(rows), len(seconds))
	if len(seconds) < least {
		t.Error("those are too few")
	}
	return rows
}

// resent returns the number of seconds that the process has sent again, to all scrapers.
func (c *child) resent(t *testing.T) (sum float64) {
	t.Helper()
	r, err := http.Get("http://" + c.addr + metricsPath)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	page, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	for series, value := range parsePage(page) {
		if strings.HasPrefix(series, "windowstat_cursor_resent_seconds_total{") {
			sum += value
		}
	}
	return sum
}
