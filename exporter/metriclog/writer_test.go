package metriclog_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

// Small segments rotate after every two seconds. Retention keeps MaxFiles segments and their indexes, and other files.
func TestIndexRotationAndRetention(t *testing.T) {
	r := newRig(t, start, metriclog.Options{MaxFileSize: 200, MaxFiles: 3})
	os.WriteFile(filepath.Join(r.dir, "othershop-metrics.log.2025-01-01"), nil, 0o644)
	os.WriteFile(filepath.Join(r.dir, "shop-metrics.log.2025-01-01.x"), nil, 0o644)
	for range 60 { // a segment has four lines of two seconds
		r.calls("a", 1, ms)
		r.now = r.now.Add(time.Second)
		r.flush(t)
	}
	want := []string{
		"othershop-metrics.log.2025-01-01", "shop-metrics.log.2025-01-01.x",
		today + ".27", today + ".27.idx", today + ".28", today + ".28.idx", today + ".29", today + ".29.idx",
	}
	if got := r.files(t); !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
	for _, name := range want[:2] {
		os.Remove(filepath.Join(r.dir, name))
	}
	if rows := r.checkIndexes(t); rows != 6 {
		t.Errorf("%d rows kept, want 6", rows)
	}
}

// A new segment begins at local midnight. (Sentinel indexes the first second of a day in the previous segment.)
func TestMidnight(t *testing.T) {
	zone := time.FixedZone("x", 5*3600+1800)
	midnight := time.Date(2026, 3, 1, 0, 0, 0, 0, zone)
	r := newRig(t, midnight.Add(-3*time.Second), metriclog.Options{Location: zone})
	for range 6 {
		r.calls("a", 1, ms)
		r.now = r.now.Add(999 * ms)
	}
	r.flush(t)
	if rows := r.checkIndexes(t); rows != 6 {
		t.Errorf("%d rows", rows)
	}
	for name, first := range map[string]int64{"shop-metrics.log.2026-02-28": -3, "shop-metrics.log.2026-03-01": 0} {
		seconds, offsets := r.index(t, name)
		if len(seconds) != 3 || seconds[0] != midnight.Unix()+first || offsets[0] != 0 {
			t.Errorf("%s begins with second %d at offset %d", name, seconds[0]-midnight.Unix(), offsets[0])
		}
	}
}

// Run writes every second when it ends. After ctx is done, it writes the open second.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := collector.New(collector.Options{})
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		w, err := metriclog.New(c, metriclog.Options{Dir: dir, App: "shop", Location: time.UTC})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		time.Sleep(250 * ms)
		sent := 0
		for i := range 35 { // 7 seconds
			for range i + 1 {
				e := c.Resource("a").Enter()
				e.Exit(nil)
				sent++
			}
			time.Sleep(200 * ms)
		}
		read := func() string {
			files, err := w.Files()
			if err != nil || len(files) != 1 {
				t.Fatalf("files %v, %v", files, err)
			}
			b, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		if got := read(); strings.Count(got, "\n") != 14 {
			t.Errorf("after 7 s the log has\n%s", got)
		}
		e := c.Resource("a").Enter()
		e.Exit(nil)
		sent++
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		got := read()
		logged := 0
		for line := range strings.Lines(got) {
			n, _ := strconv.Atoi(strings.Split(line, "|")[3])
			logged += n
		}
		if logged != sent {
			t.Errorf("%d sent, %d logged:\n%s", sent, logged, got)
		}
	})
}

// With ZeroRows, an idle second has rows, and a lost second has none.
func TestZeroRows(t *testing.T) {
	r := newRig(t, start, metriclog.Options{ZeroRows: true, Sync: 2 * time.Second})
	r.Resource("idle")
	for range 5 {
		r.now = r.now.Add(time.Second)
		r.flush(t)
	}
	if rows := r.checkIndexes(t); rows != 5 || r.metrics()["metriclog_rows_total"] != 10 {
		t.Errorf("%d rows, %v", rows, r.metrics())
	}
	if got := r.read(t, today); strings.Count(got, "|idle|0|0|0|0|0|0|0|0\n") != 5 {
		t.Errorf("got\n%s", got)
	}
}

// BenchmarkFlush seals and writes a second of 10,000 active resources.
func BenchmarkFlush(b *testing.B) {
	now := start
	c, err := collector.New(collector.Options{Now: func() time.Time { return now }})
	if err != nil {
		b.Fatal(err)
	}
	w, err := metriclog.New(c, metriclog.Options{Dir: b.TempDir(), App: "shop"})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 10_000 {
		c.Resource(fmt.Sprint("resource number ", i))
	}
	resources := c.Seal().Resources
	second := func() {
		for _, r := range resources {
			e := r.Enter()
			e.Exit(nil)
		}
		now = now.Add(time.Second)
	}
	flush := func() {
		if err := w.Flush(); err != nil {
			b.Fatal(err)
		}
	}
	for range 10 { // until windows and buffers stop growing
		second()
		flush()
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		second()
		b.StartTimer()
		flush()
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
}
