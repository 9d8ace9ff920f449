package sentinellog_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/exporter/sentinellog"
)

// follower is a Follower with its page, in a bubble of package synctest.
type follower struct {
	*sentinellog.Follower
	stats *collector.Collector
	page  *prom.Seconds
	stop  func() // ends the Follower as a signal does
	kill  func() // saves nothing
}

// start starts a Follower.
func start(t *testing.T, o sentinellog.Options) *follower {
	t.Helper()
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f, err := sentinellog.New(c, o)
	if err != nil {
		t.Fatal(err)
	}
	page, err := f.Seconds(prom.SecondsOptions{Logger: o.Logger})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := f.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	kill := func() {
		cancel()
		<-done
		_ = f.Close()
	}
	stop := func() {
		page.Save(context.Background())
		kill()
	}
	return &follower{f, c, page, stop, kill}
}

// brokenWriter is a client that disconnects.
type brokenWriter struct{ http.ResponseWriter }

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken") }

// scrape returns a page. If broken is set, the client does not get it.
func (f *follower) scrape(t *testing.T, cursor string, broken bool) string {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics/seconds?cursor="+cursor, nil)
	w := httptest.NewRecorder()
	if broken {
		f.page.ServeHTTP(brokenWriter{w}, r)
		return ""
	}
	f.page.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// metric returns the value of a metric of the Follower about itself, over all labels.
func (f *follower) metric(name string) (sum float64) {
	for _, m := range f.stats.Metrics() {
		if m.Name == name {
			m.Each(func(v float64, _ ...string) { sum += v })
		}
	}
	return sum
}

// database holds samples by series and second.
type database map[string]map[int64]float64

// store adds the samples of a page, as a server does that takes each sample once and in order.
func (d database) store(t *testing.T, page string) {
	t.Helper()
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		line = strings.TrimSuffix(line, "\n")
		i := strings.LastIndexByte(line, ' ')
		j := strings.LastIndexByte(line[:i], ' ')
		v, err := strconv.ParseFloat(line[j+1:i], 64)
		ms, err2 := strconv.ParseInt(line[i+1:], 10, 64)
		if err != nil || err2 != nil {
			t.Fatalf("line %q: %v, %v", line, err, err2)
		}
		name, second := line[:j], ms/1000
		if d[name] == nil {
			d[name] = map[int64]float64{}
		}
		if _, ok := d[name][second]; ok {
			t.Errorf("%s has the second %d twice", name, second)
		}
		d[name][second] = v
	}
}

// compare reports the samples in [from, to) that differ from the truth of a process.
func (d database) compare(t *testing.T, l *javaLog, from, to int64) (rows int) {
	t.Helper()
	labels := fmt.Sprintf(`app=%q`, l.app)
	if l.pid != 0 {
		labels += fmt.Sprintf(`,pid="%d"`, l.pid)
	}
	wrong := 0
	fail := func(format string, args ...any) {
		if wrong++; wrong <= 5 {
			t.Errorf("%s: "+format, append([]any{labels}, args...)...)
		}
	}
	known := map[string]bool{}
	for second := from; second < to; second++ {
		truth := l.truth[second]
		for name := range truth {
			known[name] = true
		}
		run := d[fmt.Sprintf("windowstat_persecond_run{%s}", labels)][second]
		if (run != 0) != (len(truth) > 0) {
			fail("second %d has the run %v and %d rows", second, run, len(truth))
		}
		for name := range known {
			c, has := truth[name]
			series := func(metric string) string {
				if name == "__total_inbound_traffic__" {
					return fmt.Sprintf("windowstat_persecond_inbound_%s{%s}", metric, labels)
				}
				return fmt.Sprintf(
					"windowstat_persecond_%s{%s,resource=%q}",
					metric,
					labels,
					strings.ReplaceAll(name, "|", "_"),
				)
			}
			if has {
				rows++
			}
			for _, m := range []struct {
				metric string
				v      float64
				absent bool
			}{
				{"pass", float64(c.pass), false},
				{"block", float64(c.block), false},
				{"complete", float64(c.success), false},
				{"exception", float64(c.exception), false},
				{"occupied_pass", float64(c.occupied), false},
				{"in_flight_max", float64(c.concurrency), c.concurrency == 0},
				{"rt_avg_seconds", time.Duration(c.rt * 1e6).Seconds(), c.success == 0},
			} {
				got, ok := d[series(m.metric)][second]
				switch {
				case len(truth) == 0 && ok:
					fail("%s has the second %d, in which the process has no row", series(m.metric), second)
				case len(truth) == 0:
				case !has && m.metric != "pass" && !ok: // may be idle for a minute
				case m.absent && ok:
					fail("%s is %v in second %d, want none", series(m.metric), got, second)
				case !m.absent && (!ok || math.Abs(got-m.v) > 1e-12):
					fail("%s is %v, %v in second %d, want %v", series(m.metric), got, ok, second, m.v)
				}
			}
		}
	}
	if wrong > 5 {
		t.Errorf("%s: %d more", labels, wrong-5)
	}
	return rows
}

// Each row of each process is in a server's database once, with the numbers of the log: with two servers, scrapes that
// break off, a process that dies, one that writes late, full files, a restart and a kill of the Follower.
func TestEveryRowArrivesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, state := t.TempDir(), t.TempDir()
		o := sentinellog.Options{Dir: dir, StateDir: state}
		punctual := newJavaLog(t, dir, "shop", 0)
		punctual.maxBytes = 20 << 10
		first, second := newJavaLog(t, dir, "till", 11), newJavaLog(t, dir, "till", 12)
		late := newJavaLog(t, dir, "batch", 13)
		late.maxBytes = 400 // several files at once
		begin := time.Now().Unix()
		f := start(t, o)
		servers := [2]database{{}, {}}
		const length = 600
		var pending []int64
		for i := range int64(length + 60) {
			now := begin + i
			if i < length {
				punctual.write(now, traffic(1, now, 30, false))
				if i < 300 {
					first.write(now, traffic(2, now, 5, true))
				}
				second.write(now, traffic(3, now, 2, true))
				if pending = append(pending, now); len(pending) == 40 { // flushed every 40 seconds
					for _, at := range pending {
						late.write(at, traffic(4, at, 3, false))
					}
					pending = nil
				}
			}
			time.Sleep(time.Second)
			switch i {
			case 200:
				f.stop()
				time.Sleep(3 * time.Second)
				f = start(t, o)
			case 400: // kill: nothing is saved, only the lock ends
				f.kill()
				f = start(t, o)
			}
			if i%15 == 5 {
				for s, d := range servers {
					d.store(t, f.scrape(t, fmt.Sprint("server", s), i%150 == 5))
				}
			}
		}
		time.Sleep(time.Minute)
		for s, d := range servers {
			d.store(t, f.scrape(t, fmt.Sprint("server", s), false))
			for _, l := range []*javaLog{punctual, first, second, late} {
				if rows := d.compare(t, l, begin, begin+length); rows < length/2 {
					t.Errorf("%s has only %d rows", l.app, rows)
				}
			}
		}
		if n := f.metric("sentinel_lost_rows_total"); n != 0 {
			t.Errorf("%v rows are lost", n)
		}
		f.stop()
	})
}
