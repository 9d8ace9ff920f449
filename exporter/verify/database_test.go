package verify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/prom"
)

// database is a server with the part of the query API that a client uses.
type database struct {
	t          *testing.T
	series     map[string][]point // by labels, as JSON
	closed     bool               // a range includes its beginning, as in Prometheus 2
	maxSamples int                // of a response; 0 for any number
	interval   int64              // of deduplication, in seconds; 0 for none
	queries    int
	onQuery    func()
	warnings   []string
}

// queryPattern matches the selectors of a client.
var queryPattern = regexp.MustCompile(
	`^\{__name__=~"([^"]*)",(?:cluster="c",)?instance="(\w+)",job="j"\}(?:\[(\d+)ms\])?$`)

func (d *database) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.queries++
	if d.onQuery != nil {
		d.onQuery()
	}
	if strings.HasPrefix(r.FormValue("query"), "last_over_time(") { // labels that may have a run
		all := []map[string]any{}
		for text := range d.series {
			labels := map[string]string{}
			if _ = json.Unmarshal([]byte(text), &labels); labels["__name__"] == runName {
				all = append(all, map[string]any{"metric": labels})
			}
		}
		data := map[string]any{"resultType": "vector", "result": all}
		_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": data})
		return
	}
	q := queryPattern.FindStringSubmatch(r.FormValue("query") + r.FormValue("match[]"))
	if q == nil {
		d.t.Errorf("unexpected request %s", r.URL)
		return
	}
	all := []map[string]any{}
	var names, resources []string
	n := 0
	end, _ := strconv.ParseInt(r.FormValue("time"), 10, 64)
	length, _ := strconv.ParseInt(q[3], 10, 64)
	for text, points := range d.series {
		labels := map[string]string{}
		_ = json.Unmarshal([]byte(text), &labels)
		if !slices.Contains(strings.Split(q[1], "|"), labels["__name__"]) || labels["instance"] != q[2] {
			continue
		}
		names, resources = append(names, labels["__name__"]), append(resources, labels["resource"])
		var values [][2]any
		for _, p := range points {
			if p.at <= end*1000 && (p.at > end*1000-length || d.closed && p.at == end*1000-length) {
				values = append(values, [2]any{float64(p.at) / 1000, fmt.Sprint(p.value)})
			}
		}
		if d.interval > 0 {
			values = deduplicate(values, d.interval)
		}
		if n += len(values); len(values) > 0 {
			all = append(all, map[string]any{"metric": labels, "values": values})
		}
	}
	var data any = map[string]any{"resultType": "matrix", "result": all}
	switch {
	case strings.Contains(r.URL.Path, "/label/resource"):
		data = resources
	case strings.Contains(r.URL.Path, "/label/"):
		data = names
	case strings.HasSuffix(r.URL.Path, "/series"):
		sets := []map[string]string{}
		for text := range d.series {
			labels := map[string]string{}
			_ = json.Unmarshal([]byte(text), &labels)
			if slices.Contains(strings.Split(q[1], "|"), labels["__name__"]) && labels["instance"] == q[2] {
				sets = append(sets, labels)
			}
		}
		data = sets
	}
	if d.maxSamples > 0 && n > d.maxSamples {
		w.WriteHeader(http.StatusUnprocessableEntity)
		_, _ = w.Write([]byte(`{"status":"error","errorType":"execution",` +
			`"error":"query processing would load too many samples into memory"}`))
		return
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": data, "warnings": d.warnings})
}

// scrape adds the samples of the per-second endpoint, with labels.
func (d *database) scrape(page http.Handler) {
	rec := httptest.NewRecorder()
	page.ServeHTTP(rec, httptest.NewRequest("GET", "/metrics/seconds?window=600s", nil))
	line := regexp.MustCompile(`^(\w+)(?:\{resource="(\w+)"\})? (\S+) (\d+)\n$`)
	for text := range strings.Lines(rec.Body.String()) {
		if m := line.FindStringSubmatch(text); m != nil {
			at, _ := strconv.ParseInt(m[4], 10, 64)
			v, _ := strconv.ParseFloat(m[3], 64)
			labels := seriesOf(m[1], m[2])
			d.series[labels] = append(d.series[labels], point{at, v})
		}
	}
}

// seriesOf returns the labels of a series as JSON. More has further names and values.
func seriesOf(metric, resource string, more ...string) string {
	labels := map[string]string{"__name__": metric, "job": "j", "instance": "i"}
	if resource != "" {
		labels["resource"] = resource
	}
	for i := 0; i < len(more); i += 2 {
		labels[more[i]] = more[i+1]
	}
	text, _ := json.Marshal(labels)
	return string(text)
}

const pass, block, runName = "windowstat_persecond_pass", "windowstat_persecond_block", "windowstat_persecond_run"

// fixture is a service with a log, and a database that has all of its samples, across a restart.
type fixture struct {
	*database
	gap     Gap
	options Options
	begin   int64
}

// newFixture returns a service with two processes of 200 seconds each, and half a minute between them. "steady" has
// calls in every second, "rare" in the first quarter of each minute, "early" only in the first process, and "late" only
// in the second.
func newFixture(t *testing.T) *fixture {
	t.Helper()
	d := &database{t: t, series: map[string][]point{}}
	for labels, points := range original.series {
		d.series[labels] = slices.Clone(points)
	}
	s := httptest.NewServer(d)
	t.Cleanup(s.Close)
	return &fixture{
		d,
		Gap{Searcher: metriclog.Searcher{Dir: original.dir}, From: original.begin.Add(-time.Hour), To: time.Now()},
		Options{URL: s.URL, Labels: map[string]string{"job": "j", "instance": "i"}},
		original.begin.Unix(),
	}
}

// original is the fixture that newFixture copies. TestMain sets it.
var original struct {
	dir   string
	begin time.Time
	database
}

func TestMain(m *testing.M) {
	original.begin = time.Now().Add(-20 * time.Minute).Truncate(time.Second)
	original.series = map[string][]point{}
	dir, err := os.MkdirTemp("", "verify")
	original.dir = dir
	for process := range 2 {
		if err == nil {
			err = runProcess(process)
		}
	}
	if err != nil {
		panic(err)
	}
	status := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(status)
}

// runProcess runs a process with its calls, log and per-second endpoint, from its start to its end.
func runProcess(process int) error {
	now := original.begin.Add(time.Duration(process)*230*time.Second + 500*time.Millisecond)
	o := metriclog.Options{Dir: original.dir, App: "shop", MaxFileSize: 20_000, Logger: slog.New(slog.DiscardHandler)}
	last, err := metriclog.Last(o)
	if err != nil {
		return err
	}
	c, err := collector.New(collector.Options{Now: func() time.Time { return now }, After: last})
	if err != nil {
		return err
	}
	log, err := metriclog.New(c, o)
	if err != nil {
		return err
	}
	page, err := prom.NewSeconds(c, prom.SecondsOptions{})
	if err != nil {
		return err
	}
	for second := range 200 {
		calls := map[string]bool{
			"steady": true,
			"rare":   second%60 < 15,
			"early":  process == 0 && second%90 == 50,
			"late":   process == 1 && second > 20,
		}
		for name, called := range calls {
			for range second%3 + 1 {
				if !called {
					break
				}
				_, e, err := c.Enter(context.Background(), name, collector.Inbound())
				if err != nil {
					return err
				}
				e.Exit(nil)
			}
		}
		now = now.Add(time.Second)
	}
	original.scrape(page)
	return errors.Join(log.Flush(), log.Close())
}

// drop removes the points that match, and series without points.
func (d *database) drop(match func(series string, at int64) bool) {
	for labels, points := range d.series {
		d.series[labels] = slices.DeleteFunc(points, func(p point) bool { return match(labels, p.at/1000) })
	}
	maps.DeleteFunc(d.series, func(_ string, points []point) bool { return len(points) == 0 })
}
