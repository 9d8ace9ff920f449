package bench_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/alibaba/sentinel-golang/core/log/metric"

	"github.com/windowstat/windowstat/bench"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

// searched is the searched part of a log of six files of 50 MiB.
const searched = 5 * time.Minute

// newLog writes six files of 50 MiB with a hundred rows a second, like a fast Writer. It returns the first and the last
// second.
func newLog(b *testing.B, dir string) (first, last time.Time) {
	b.Helper()
	const files, size, rows = 6, 50 << 20, 100
	first = time.Date(2026, 1, 2, 0, 4, 5, 0, time.Local)
	last = first
	names := append(bench.Names(rows-1), collector.InboundTotal)
	for n := range files {
		var data, idx []byte
		for len(data) < size {
			idx = binary.BigEndian.AppendUint64(idx, uint64(last.Unix()))
			idx = binary.BigEndian.AppendUint64(idx, uint64(len(data)))
			head := fmt.Sprintf("%d|%s|", last.UnixMilli(), last.Format(time.DateTime))
			for i, name := range names {
				data = append(append(data, head...), name...)
				data = fmt.Appendf(data, "|%d|%d|%d|%d|%d|0|%d|0\n", 10*i, i, 9*i, i/10, n+i%50, i%7)
			}
			last = last.Add(time.Second)
		}
		path := filepath.Join(dir, "shop-metrics.log."+first.Format(time.DateOnly))
		if n > 0 {
			path += fmt.Sprint(".", n)
		}
		if err := errors.Join(os.WriteFile(path, data, 0o644), os.WriteFile(path+".idx", idx, 0o644)); err != nil {
			b.Fatal(err)
		}
	}
	last = last.Add(-time.Second)
	if last.Day() != first.Day() {
		b.Fatal("the log has more than a day")
	}
	return first, last
}

// BenchmarkSearch finds five minutes in the fifth of six files of the metric log. It creates a new sentinel-golang
// searcher each time, because a second search with the same searcher misses rows.
func BenchmarkSearch(b *testing.B) {
	dir := b.TempDir()
	var first, last time.Time
	for _, c := range []struct{ name, resource string }{
		{"all-resources/sentinel-golang", ""},
		{"one-resource/sentinel-golang", bench.Names(1)[0]},
	} {
		var ours, other func() int
		b.Run(c.name, func(b *testing.B) {
			if first.IsZero() {
				first, last = newLog(b, dir)
			}
			from := first.Add(last.Sub(first) * 3 / 4)
			to := from.Add(searched - time.Second)
			q := metriclog.Query{From: from, To: to}
			if c.resource != "" {
				q.Match = func(name string) bool { return name == c.resource }
			}
			ours = func() (n int) {
				rows, err := metriclog.Searcher{Dir: dir, App: "shop"}.Search(q)
				if err != nil {
					b.Fatal(err)
				}
				for range rows.All() {
					n++
				}
				if err := rows.Err(); err != nil {
					b.Fatal(err)
				}
				return n
			}
			other = func() int {
				s, err := metric.NewDefaultMetricSearcher(dir, "shop-metrics.log")
				if err != nil {
					b.Fatal(err)
				}
				items, err := s.FindByTimeAndResource(uint64(from.UnixMilli()), uint64(to.UnixMilli()), c.resource)
				if err != nil {
					b.Fatal(err)
				}
				return len(items)
			}
			if n, m := ours(), other(); n != m || n < 300 {
				b.Fatalf("we find %d rows, and sentinel-golang %d", n, m)
			}
			var t turns
			for b.Loop() {
				t.add(each(10, func() { ours() }), each(1, func() { other() }))
			}
			t.report(b)
		})
	}
}
