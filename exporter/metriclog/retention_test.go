//go:build unix

package metriclog_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// size returns the total size of the log's segments and indexes.
func (r *rig) size(t *testing.T) (sum int64) {
	t.Helper()
	for _, name := range r.files(t) {
		sum += int64(len(r.read(t, name)))
	}
	return sum
}

// With MaxBytes, the log stays below the limit except for the growth of the current segment, and uses nearly all of it.
func TestRetentionByBytes(t *testing.T) {
	const most = 10_000
	r := newRig(t, start, metriclog.Options{MaxFileSize: 1000, MaxBytes: most})
	for range 10 {
		r.seconds(t, 30)
		if got := r.size(t); got > most+1200 { // the current segment may exceed the limit
			t.Errorf("%d bytes, at most %d are allowed", got, most)
		}
	}
	if got := r.size(t); got < most-2400 {
		t.Errorf("%d bytes remain, want nearly %d", got, most)
	}
	r.checkIndexes(t)
}

// A limit below the default size of a segment holds, too.
func TestRetentionBelowDefaultFileSize(t *testing.T) {
	const most = 10_000
	r := newRig(t, start, metriclog.Options{MaxBytes: most})
	for range 10 {
		r.seconds(t, 60)
		if got := r.size(t); got > most+most/8+60*150 { // segments are deleted once a minute
			t.Errorf("%d bytes, at most %d are allowed", got, most)
		}
	}
	r.checkIndexes(t)
}

// Retention deletes a segment when its last second, not its first, is too old, even if no new segment begins.
func TestRetentionByAge(t *testing.T) {
	r := newRig(t, start, metriclog.Options{MaxFileSize: 3000, MaxAge: 90 * time.Second})
	for n := range 300 {
		r.seconds(t, 1)
		rows, err := metriclog.Searcher{Dir: r.dir}.Search(metriclog.Query{})
		if err != nil {
			t.Fatal(err)
		}
		for row := range rows.All() {
			age := r.now.Sub(row.Start) / time.Second
			if age < time.Duration(min(n, 90)) || age > 90+2*30 { // a segment has 25 seconds
				t.Errorf("after %d seconds, the oldest second is %d seconds old", n, age)
			}
			break
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
	}
	got := r.files(t)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	r = newRig(t, r.now.Add(5*time.Minute),
		metriclog.Options{Dir: r.dir, MaxAge: 90 * time.Second}) // the current segment is not full
	if r.seconds(t, 1); len(r.files(t)) != 2 || len(got) < 8 {
		t.Errorf("%v, later %v", got, r.files(t))
	}
	r.checkIndexes(t)
}

// Retention keeps the files of other applications and processes, and files that are not segments, however old they are.
func TestRetentionKeepsOtherFiles(t *testing.T) {
	dir := t.TempDir()
	foreign := []string{
		"other-metrics.log.2025-01-01",
		"other-metrics.log.pid7.2025-01-01",
		"shop-metrics.log.2025-01-01.bak",
		"shop-metrics.log.pid9.2025-01-01",
	}
	for _, name := range append(foreign, "shop-metrics.log.2025-01-01") {
		const line = "1735689600000|2025-01-01 00:00:00|a|1|1|1|1|1|1|1|0\n"
		if err := os.WriteFile(filepath.Join(dir, name), []byte(line), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	r := newRig(t, start, metriclog.Options{Dir: dir, MaxFileSize: 200, MaxFiles: 3})
	r.seconds(t, 20)
	all := slices.Clone(foreign)
	for _, n := range []string{"7", "8", "9"} {
		all = append(all, today+"."+n, today+"."+n+".idx")
	}
	slices.Sort(all)
	if got := r.files(t); !slices.Equal(got, all) {
		t.Errorf("files\n%v, want\n%v", got, all)
	}
}

// Two processes never write the same log.
func TestLockedLog(t *testing.T) {
	r := newRig(t, start, metriclog.Options{})
	r.seconds(t, 1)
	_, err := metriclog.New(r.Collector, metriclog.Options{Dir: r.dir, App: "shop"})
	if err == nil || !strings.Contains(err.Error(), "shop-metrics.log.lck: another process writes this log") {
		t.Errorf("%v", err)
	}
	if _, err := metriclog.Last(metriclog.Options{Dir: r.dir, App: "shop"}); err == nil {
		t.Error("Last repaired the log of another process")
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	w, err := metriclog.New(r.Collector, metriclog.Options{Dir: r.dir, App: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
