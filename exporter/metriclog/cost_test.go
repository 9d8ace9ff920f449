//go:build unix

package metriclog

import (
	"fmt"
	"log/slog"
	"syscall"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// busyWriter is a Writer for the seconds of a Collector, each with some calls of each resource.
func busyWriter(b *testing.B, resources, seconds, calls int, options ...collector.CallOption) *Writer {
	b.Helper()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c, err := collector.New(collector.Options{
		Now:     func() time.Time { return now },
		Windows: node.Options{History: time.Hour}, MaxResources: resources, MaxMemory: 1 << 40,
	})
	if err != nil {
		b.Fatal(err)
	}
	w, err := New(c,
		Options{Dir: b.TempDir(), App: "shop", Location: time.UTC, MaxFiles: 1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = w.Close() })
	names := make([]string, resources)
	for i := range names {
		names[i] = fmt.Sprintf("/api/v1/resource-%05d", i)
	}
	for range seconds {
		for i, name := range names {
			for n := range calls {
				_, e, err := c.Enter(b.Context(), name, options...)
				if err != nil {
					b.Fatal(err)
				}
				now = now.Add(time.Duration((i%7+1)*(n+1)*1319) * time.Nanosecond)
				e.Exit(nil)
			}
		}
		now = now.Truncate(time.Second).Add(time.Second)
	}
	return w
}

// catchUp repeatedly writes all seconds with w. It reports the CPU time per row.
func catchUp(b *testing.B, w *Writer, rows int64) {
	b.Helper()
	b.ReportAllocs()
	var before, after syscall.Rusage
	used := func(r *syscall.Rusage) int64 {
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, r); err != nil {
			b.Fatal(err)
		}
		return r.Utime.Nano() + r.Stime.Nano()
	}
	first := w.next
	again := func() {
		w.next = first
		w.files.last = 0
		written := w.stat.rows.Load()
		if err := w.Flush(); err != nil {
			b.Fatal(err)
		}
		if n := w.stat.rows.Load() - written; n != rows || w.stat.lost.Load() > 0 {
			b.Fatalf("%d rows, want %d; %d lost seconds", n, rows, w.stat.lost.Load())
		}
	}
	again()
	start := used(&before)
	for b.Loop() {
		again()
	}
	b.ReportMetric(float64(used(&after)-start)/float64(rows)/float64(b.N), "cpu-ns/row")
}

// BenchmarkCatchUp measures the writing of a log that is delayed by some seconds. With inbound calls, the records are
// read twice: for their resources and for the totals.
func BenchmarkCatchUp(b *testing.B) {
	for _, c := range []struct {
		resources, delay int
		inbound          []collector.CallOption
	}{
		{100, 60, nil},
		{100, 900, nil},
		{100, 3500, nil},
		{100, 3500, []collector.CallOption{collector.Inbound()}},
		{1000, 900, nil},
		{2000, 60, nil},
	} {
		name := fmt.Sprintf("resources=%d/behind=%ds", c.resources, c.delay)
		if c.inbound != nil {
			name += "/inbound"
		}
		b.Run(name, func(b *testing.B) {
			w := busyWriter(b, c.resources, c.delay, 1, c.inbound...)
			catchUp(b, w, int64((c.resources+1)*c.delay))
		})
	}
}
