package e2e

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/node"
)

const (
	yesterdaySeconds = 300
	missedSeconds    = 180
	keptSeconds      = 60 // of those; the other two minutes are a hole
)

// TestBackfill has a Prometheus lack five minutes of yesterday, and two of those just gone, which pass in fast motion. The
// first are filled by promtool, and the others by remote write; then every second of the metric log is there once.
func TestBackfill(t *testing.T) {
	t.Parallel()
	command := buildWindowstat(t)
	l := listen(t, "127.0.0.1:0")
	log := metriclog.Options{Dir: t.TempDir(), App: "e2e"}
	unix := func(second int64) string { return strconv.FormatInt(second, 10) }
	arguments := func(from, to int64, more ...string) []string {
		return append([]string{
			command, "verify", "--dir", log.Dir, "--from", unix(from), "--to", unix(to), "--label", "job=hole", "--label", "instance=" + l.Addr().String(),
		}, more...)
	}

	// Yesterday there was no server.
	y := logPaced(t, time.Now().Add(-24*time.Hour), log)
	dayBefore := y.second
	for range yesterdaySeconds {
		y.tick()
	}
	y.end(t)
	s := newServer(t, "prometheus-3", prometheus3.path(t), false)
	data := filepath.Join(s.dir, "data")
	file := filepath.Join(t.TempDir(), "hole.om")
	if err := run(t.Context(), ".", arguments(dayBefore, y.second-1, "--new", "--openmetrics", file)...); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), ".", promtool.path(t), "tsdb", "create-blocks-from", "openmetrics", file, data); err != nil {
		t.Fatal(err)
	}

	// Today it is there, and away for a while.
	p := logPaced(t, time.Now().Add(-missedSeconds*time.Second), log)
	seconds, err := prom.NewSeconds(p.stats, prom.SecondsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	page := &closable{page: seconds, answered: map[string]int{}}
	serve(t, page, l, seconds.ConnState)
	s.configure(t, s.config([]job{{name: "hole", path: secondsPath, targets: []string{l.Addr().String()}, interval: 2 * time.Second, timeout: time.Second}})+
		documented(t, "verify.md", "out_of_order_time_window", ""))
	s.start(t)
	begin := p.second
	scraped := func(times int) {
		t.Helper()
		times += page.least(1)
		deadline := time.Now().Add(catchUp)
		p.live(func() bool { return page.least(1) < times && time.Now().Before(deadline) })
		if page.least(1) < times {
			t.Fatal("the server does not scrape")
		}
	}
	scraped(3)
	page.closed.Store(true)
	closed := p.second
	for range missedSeconds {
		p.tick()
	}
	page.closed.Store(false)
	scraped(3)
	end := p.second
	p.end(t)

	rows := p.rows(t, dayBefore)
	steady := `windowstat_persecond_pass{job="hole",resource="steady"}`
	await(t, s, steady, end, time.Now().Add(catchUp))
	lacks := float64(end-begin) - s.number(t, "count_over_time("+steady+"[10m])")
	if lacks < missedSeconds-keptSeconds-5 {
		t.Fatalf("the server lacks only %v seconds", lacks)
	}
	said, err := output(t.Context(), ".", arguments(closed-20, closed+missedSeconds, "--heal", "--url", "http://"+s.addr, "--delay", "1s")...)
	if err != nil || !strings.Contains(string(said), " 0 refused, 0 unconfirmed, 0 not sent") {
		t.Fatalf("%s: %v", said, err)
	}
	t.Logf("the server lacked %v seconds: %s", lacks, said)

	for _, f := range fields {
		today := checkSamples(t, s, f.metric+`{job="hole"}[10m]`, rows.values(f, begin, end, true), end)
		day := checkSamples(t, s, f.metric+`{job="hole"}[10m] @ `+unix(dayBefore+yesterdaySeconds), rows.values(f, dayBefore, dayBefore+yesterdaySeconds, false), end)
		t.Logf("%d samples of %s of today, and %d of yesterday", today, f.metric, day)
	}
	checkCounters(t, s)
	for from, to := range map[int64]int64{begin: end - 2, dayBefore: dayBefore + yesterdaySeconds - 1} {
		if said, err := output(t.Context(), ".", arguments(from, to, "--url", "http://"+s.addr, "--delay", "1s")...); err != nil {
			t.Errorf("%s: %v", said, err)
		}
	}
}

// TestBlocksOfSeveralParts heals a day-old gap of more samples than a part of a file of OpenMetrics has: promtool makes blocks of all
// parts, and then the database is what the log is.
func TestBlocksOfSeveralParts(t *testing.T) {
	t.Parallel()
	command := buildWindowstat(t)
	const resources, length = 400, 600 // more than a million samples
	log := metriclog.Options{Dir: t.TempDir(), App: "e2e"}
	now := time.Now().Add(-24 * time.Hour).Truncate(time.Second)
	begin := now.Unix()
	c, err := collector.New(collector.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	w, err := metriclog.New(c, log)
	if err != nil {
		t.Fatal(err)
	}
	for second := range length {
		for i := range resources {
			for range 1 + (second+i)%3 {
				e := c.Resource(fmt.Sprint("r", i)).Enter()
				e.Exit(nil)
			}
		}
		now = now.Add(time.Second)
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}

	s := newServer(t, "prometheus-3", prometheus3.path(t), false)
	s.configure(t, s.config(nil))
	verified := func(from, to int64, more ...string) {
		t.Helper()
		if said, err := output(t.Context(), ".", append([]string{
			command, "verify", "--dir", log.Dir, "--from", strconv.FormatInt(from, 10), "--to", strconv.FormatInt(to, 10),
			"--label", "job=parts", "--label", "instance=shop",
		}, more...)...); err != nil {
			t.Fatalf("%s: %v", said, err)
		}
	}
	blocks := func(file string) {
		t.Helper()
		if err := run(t.Context(), ".", promtool.path(t), "tsdb", "create-blocks-from", "openmetrics", file, filepath.Join(s.dir, "data")); err != nil {
			t.Fatal(err)
		}
	}
	first, gap := filepath.Join(t.TempDir(), "first.om"), filepath.Join(t.TempDir(), "gap.om")
	verified(begin, begin+9, "--new", "--openmetrics", first) // the database knows the instance
	blocks(first)
	s.start(t)
	verified(begin, begin+length-1, "--heal", "--url", "http://"+s.addr, "--openmetrics", gap)
	text, err := os.ReadFile(gap)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text, []byte("# TYPE windowstat_persecond_pass ")); n < 2 || !bytes.HasSuffix(text, []byte("\n# EOF\n")) {
		t.Errorf("%d parts", n)
	}
	s.end(syscall.SIGTERM)
	<-s.ended
	blocks(gap)
	s.start(t)
	verified(begin, begin+length-1, "--url", "http://"+s.addr)
}

// loggedPaced are paced statistics with a metric log.
type loggedPaced struct {
	*paced
	log *metriclog.Writer
}

// logPaced begins at a time, or after what is logged.
func logPaced(t *testing.T, at time.Time, o metriclog.Options) loggedPaced {
	t.Helper()
	last, err := metriclog.Last(o)
	if err != nil {
		t.Fatal(err)
	}
	p := newPaced(t, at, []string{"steady", "now and then", "once", "re\"fus\\ed"}, collector.Options{
		After: last, Windows: node.Options{History: keptSeconds * time.Second},
	})
	w, err := metriclog.New(p.stats, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	begin := p.second
	p.calls = func(resource int, second int64) count {
		since := int(second - begin)
		switch {
		case resource == 0:
			return count{pass: 1 + since*7%13}
		case resource == 1 && since%10 < 3:
			return count{pass: 1 + since%5, block: since % 3}
		case resource == 2 && since == 1:
			return count{pass: 3}
		case resource == 3 && since%4 == 0:
			return count{block: 1 + since%6}
		}
		return count{}
	}
	p.ticked = func(resource int, _ int64, _ count) {
		if err := w.Flush(); err != nil && resource == 0 { // the seconds before
			t.Error(err)
		}
	}
	return loggedPaced{p, w}
}

// end writes the last second, and lets go of the log.
func (p loggedPaced) end(t *testing.T) {
	t.Helper()
	if err := p.log.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := p.log.Close(); err != nil {
		t.Fatal(err)
	}
}

// loggedRows are rows of a log, by resource and Unix second.
type loggedRows map[string]map[int64]metriclog.Row

// rows reads the log from a second on.
func (p loggedPaced) rows(t *testing.T, from int64) loggedRows {
	t.Helper()
	files, err := p.log.Files()
	if err != nil {
		t.Fatal(err)
	}
	all, err := readLog(files)
	if err != nil {
		t.Fatal(err)
	}
	rows := loggedRows{}
	for _, row := range all {
		if row.Start.Unix() < from {
			continue
		}
		if rows[row.Resource] == nil {
			rows[row.Resource] = map[int64]metriclog.Row{}
		}
		rows[row.Resource][row.Start.Unix()] = row
	}
	return rows
}

// values are those of a metric: zero where a resource has no row, and for more than a minute only those of passes. They begin
// with its first one, unless it was scraped before.
func (r loggedRows) values(f field, from, end int64, scraped bool) values {
	all := values{}
	for resource, rows := range r {
		last := from - 1
		for second := from; second < end; second++ {
			row, ok := rows[second]
			if ok {
				last = second
			}
			if all[resource] == nil {
				if !ok && !scraped {
					continue
				}
				all[resource] = map[int64]float64{}
			}
			if f.sent(second - last) {
				all[resource][second] = float64(f.of(row))
			}
		}
	}
	return all
}
