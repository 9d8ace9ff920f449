package sentinelstat_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/alibaba/sentinel-golang/core/base"
	"github.com/alibaba/sentinel-golang/core/config"
	"github.com/alibaba/sentinel-golang/core/log/metric"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

// item converts a row to the item that Sentinel's reader would return for the same line.
func item(r metriclog.Row) base.MetricItem {
	return base.MetricItem{
		Resource: r.Resource, Timestamp: uint64(r.Start.UnixMilli()),
		PassQps: uint64(
			r.Pass,
		), BlockQps: uint64(r.Block), CompleteQps: uint64(r.Success), ErrorQps: uint64(r.Exception),
		AvgRt: uint64(r.RT.Milliseconds()), OccupiedPassQps: uint64(r.OccupiedPass), Concurrency: uint32(r.Concurrency),
	}
}

// search returns the rows of a resource in a range of time, as Sentinel's items. An empty resource matches all rows.
func search(t *testing.T, dir string, from, to time.Time, resource string) (items []base.MetricItem) {
	t.Helper()
	q := metriclog.Query{From: from, To: to}
	if resource != "" {
		q.Match = func(name string) bool { return name == resource }
	}
	rows, err := metriclog.Searcher{Dir: dir, App: "shop"}.Search(q)
	if err != nil {
		t.Fatal(err)
	}
	for row := range rows.All() {
		items = append(items, item(row))
	}
	if err := rows.Err(); err != nil || rows.Malformed() != 0 {
		t.Errorf("%d malformed lines, %v", rows.Malformed(), err)
	}
	return items
}

func same(t *testing.T, what string, got []*base.MetricItem, want []base.MetricItem) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("%s: %d items, want %d", what, len(got), len(want))
		return
	}
	for i := range got {
		if *got[i] != want[i] {
			t.Errorf("%s: item %d is\n%+v, want\n%+v", what, i, *got[i], want[i])
			return
		}
	}
}

// Sentinel's searcher finds the same rows in a metric log of windowstat as windowstat's searcher, across several files
// and midnight. Sentinel's reader parses every line.
func TestSentinelReadsTheMetricLog(t *testing.T) {
	dir := t.TempDir()
	midnight := time.Date(2026, 1, 3, 0, 0, 0, 0, time.Local)
	now := midnight.Add(-50 * time.Second)
	begin := now
	c, err := collector.New(collector.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	w, err := metriclog.New(c, metriclog.Options{Dir: dir, App: "shop", MaxFileSize: 4000, MaxFiles: 100})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		for j := range i%7 + 1 {
			name := fmt.Sprint("GET /", j)
			e := c.Resource(name).Enter()
			now = now.Add(3 * time.Millisecond)
			if j == 3 {
				e.Exit(fmt.Errorf("x"))
			} else {
				e.Exit(nil)
			}
			c.Resource(name).Block("")
		}
		now = begin.Add(time.Duration(i+1) * time.Second)
		if err := w.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := w.Files()
	if err != nil || len(files) < 4 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	lines := 0
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(b) {
			lines++
			line := string(bytes.TrimSuffix(line, []byte("\n")))
			got, err := base.MetricItemFromFatString(line)
			if err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			want := line
			// The last field of a line of the inbound total is the number of the run. Sentinel ignores it.
			if got.Resource == collector.InboundTotal {
				want = line[:strings.LastIndexByte(line, '|')]
			}
			if again, _ := got.ToFatString(); again != want {
				t.Errorf("%q becomes %q", line, again)
			}
		}
	}
	if want := search(t, dir, time.Time{}, time.Time{}, ""); len(want) != lines {
		t.Errorf("%d rows are found, %d lines are there", len(want), lines)
	}
	for from := -1; from < 101; from += 3 {
		for _, resource := range []string{"", "GET /3", collector.InboundTotal, "nobody"} {
			from, to := begin.Add(time.Duration(from)*time.Second), begin.Add(time.Duration(from+20)*time.Second)
			// Use a new searcher for each search: Sentinel's searcher fails at its second search of several files.
			s, err := metric.NewDefaultMetricSearcher(dir, "shop-metrics.log")
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.FindByTimeAndResource(uint64(from.UnixMilli()), uint64(to.UnixMilli()), resource)
			if err != nil {
				t.Fatal(err)
			}
			same(t, fmt.Sprintf("%v, %q", from, resource), got, search(t, dir, from, to, resource))
		}
	}
}

// The searcher of windowstat finds all rows of Sentinel's writer, including the first second of a day, which Sentinel
// writes to the index of the previous day.
func TestSearcherReadsSentinelLog(t *testing.T) {
	dir := config.LogBaseDir()
	old, err := filepath.Glob(filepath.Join(dir, "shop-metrics.log*")) // of an earlier run in this process, with -count
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range old {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	w, err := metric.NewDefaultMetricLogWriterOfApp(2000, 100, "shop")
	if err != nil {
		t.Fatal(err)
	}
	// Begin in the future, because Sentinel's writer ignores items from before the time at which the writer was
	// created.
	begin := time.Now().Truncate(24 * time.Hour).Add(46 * time.Hour)
	var want []base.MetricItem
	for i := range 40 {
		at := begin.Add(time.Duration(i) * 10 * time.Minute) // 22:00 to 04:30 in UTC
		var items []*base.MetricItem
		for j := range i%5 + 1 {
			items = append(
				items,
				&base.MetricItem{
					Resource:    fmt.Sprint("GET /", j),
					Timestamp:   uint64(at.UnixMilli()),
					PassQps:     uint64(i),
					AvgRt:       7,
					Concurrency: 2,
				},
			)
			want = append(want, *items[j])
		}
		if err := w.Write(uint64(at.UnixMilli()), items); err != nil {
			t.Fatal(err)
		}
	}
	if files, err := filepath.Glob(filepath.Join(dir, "shop-metrics.log.*")); err != nil || len(files) < 4 {
		t.Fatalf("%v, %v", files, err)
	}
	for from := range 40 {
		for to := from; to < 40; to += 5 {
			var part []base.MetricItem
			first, last := begin.Add(time.Duration(from)*10*time.Minute), begin.Add(time.Duration(to)*10*time.Minute)
			for _, x := range want {
				if at := time.UnixMilli(int64(x.Timestamp)); !at.Before(first) && !at.After(last) {
					part = append(part, x)
				}
			}
			got := search(t, dir, first, last, "")
			if fmt.Sprint(got) != fmt.Sprint(part) {
				t.Fatalf("from %d to %d: %d rows, want %d:\n%v\n%v", from, to, len(got), len(part), got, part)
			}
		}
	}
}
