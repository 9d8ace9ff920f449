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
	keptSeconds      = 60 // of the recent seconds; the other two minutes are a gap
)

// TestBackfill runs a Prometheus that lacks five minutes of yesterday and two recent minutes. The recent seconds pass
// in fast motion. promtool fills the first gap, and remote write the second one. Afterwards the database must have
// every second of the metric log once.
func TestBackfill(t *testing.T) {
	t.Parallel()
	command := buildWindowstat(t)
	l := listen(t, "127.0.0.1:0")
	log := metriclog.Options{Dir: t.TempDir(), App: "e2e"}
	unix := func(second int64) string { return strconv.FormatInt(second, 10) }
	arguments := func(from, to int64, more ...string) []string {
		return append([]string{
			command, "verify", "--dir", log.Dir, "--from", unix(from), "--to", unix(to), "--label", "job=hole",
			"--label", "instance=" + l.Addr().String(),
		}, more...)
	}

	// Yesterday the server did not run.
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
	if err := run(t.Context(), ".", promtool.path(t), "tsdb", "create-blocks-from",
		"openmetrics", file, data); err != nil {
		t.Fatal(err)
	}

	// Today the server runs, and is stopped for a while.
	p := logPaced(t, time.Now().Add(-missedSeconds*time.Second), log)
	seconds, err := prom.NewSeconds(p.stats, prom.SecondsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	page := &closable{page: seconds, answered: map[string]int{}}
	serve(t, page, l, seconds.ConnState)
	s.configure(t,
		s.config([]job{{
			name: "hole", path: secondsPath, targets: []string{l.Addr().String()},
			interval: 2 * time.Second, timeout: time.Second,
		}})+
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
	said, err := output(t.Context(), ".",
		arguments(closed-20, closed+missedSeconds, "--heal", "--url", "http://"+s.addr, "--delay", "1s")...)
	if err != nil || !strings.Contains(string(said), " 0 refused, 0 unconfirmed, 0 not sent") {
		t.Fatalf("%s: %v", said, err)
	}
	t.Logf("the server lacked %v seconds: %s", lacks, said)

	for _, f := range fields {
		today := checkSamples(t, s, f.metric+`{job="hole"}[10m]`, rows.values(f, begin, end, true), end)
		day := checkSamples(t, s, f.metric+`{job="hole"}[10m] @ `+unix(dayBefore+yesterdaySeconds),
			rows.values(f, dayBefore, dayBefore+yesterdaySeconds, false), end)
		t.Logf("%d samples of %s of today, and %d of yesterday", today, f.metric, day)
	}
	checkCounters(t, s)
	for from, to := range map[int64]int64{begin: end - 2, dayBefore: dayBefore + yesterdaySeconds - 1} {
		if said, err := output(t.Context(), ".",
			arguments(from, to, "--url", "http://"+s.addr, "--delay", "1s")...); err != nil {
			t.Errorf("%s: %v", said, err)
		}
	}
}

// TestBlocksOfSeveralParts fills a gap that is a day old. The gap has more samples than one part of an OpenMetrics file
// holds. promtool makes blocks of all parts. Afterwards the database must equal the log.
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
			command, "verify", "--dir", log.Dir, "--from", strconv.FormatInt(from, 10),
			"--to", strconv.FormatInt(to, 10),
			"--label", "job=parts", "--label", "instance=shop",
		}, more...)...); err != nil {
			t.Fatalf("%s: %v", said, err)
		}
	}
	blocks := func(file string) {
		t.Helper()
		if err := run(t.Context(), ".", promtool.path(t), "tsdb", "create-blocks-from", "openmetrics", file,
			filepath.Join(s.dir, "data")); err != nil {
			t.Fatal(err)
		}
	}
	first, gap := filepath.Join(t.TempDir(), "first.om"), filepath.Join(t.TempDir(), "gap.om")
	verified(begin, begin+9, "--new", "--openmetrics", first) // the database has series of the instance
	blocks(first)
	s.start(t)
	verified(begin, begin+length-1, "--heal", "--url", "http://"+s.addr, "--openmetrics", gap)
	text, err := os.ReadFile(gap)
	if err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(text, []byte("# TYPE windowstat_persecond_pass ")); n < 2 ||
		!bytes.HasSuffix(text, []byte("\n# EOF\n")) {
		t.Errorf("%d parts", n)
	}
	s.end(syscall.SIGTERM)
	<-s.ended
	blocks(gap)
	s.start(t)
	verified(begin, begin+length-1, "--url", "http://"+s.addr)
}

// loggedPaced holds paced statistics with a metric log.
type loggedPaced struct {
	*paced
	log *metriclog.Writer
}

// logPaced begins at the given time, or after the last logged second.
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
		if err := w.Flush(); err != nil && resource == 0 { // write the seconds before
			t.Error(err)
		}
	}
	return loggedPaced{p, w}
}

// end writes the last second and closes the log.
func (p loggedPaced) end(t *testing.T) {
	t.Helper()
	if err := p.log.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := p.log.Close(); err != nil {
		t.Fatal(err)
	}
}

// loggedRows holds rows of a log by resource and Unix second.
type loggedRows map[string]map[int64]metriclog.Row

// rows reads the log, starting at the given second.
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

// values returns the values of a metric. The value is zero if a resource has no row; after more than a minute without
// rows, only passes have values. The values begin with the first row of the resource, unless the resource was scraped
// before.
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
