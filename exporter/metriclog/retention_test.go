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

// size is how many bytes the log's files have, with indexes.
func (r *rig) size(t *testing.T) (sum int64) {
	t.Helper()
	for _, name := range r.files(t) {
		sum += int64(len(r.read(t, name)))
	}
	return sum
}

func TestRetentionByBytes(t *testing.T) {
	const most = 10_000
	r := newRig(t, start, metriclog.Options{MaxFileSize: 1000, MaxBytes: most})
	for range 10 {
		r.seconds(t, 30)
		if got := r.size(t); got > most+1200 { // the current file is still growing
			t.Errorf("%d bytes, %d are allowed", got, most)
		}
	}
	if got := r.size(t); got < most-2400 {
		t.Errorf("%d bytes are left, and %d are allowed", got, most)
	}
	r.checkIndexes(t)
}

// A limit that is below the size of a file holds, too.
func TestRetentionBelowDefaultFileSize(t *testing.T) {
	const most = 10_000
	r := newRig(t, start, metriclog.Options{MaxBytes: most})
	for range 10 {
		r.seconds(t, 60)
		if got := r.size(t); got > most+most/8+60*150 { // files are deleted once a minute
			t.Errorf("%d bytes, %d are allowed", got, most)
		}
	}
	r.checkIndexes(t)
}

// A file goes when its last second is too old, not its first, and also if no new one is begun.
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
			if age < time.Duration(min(n, 90)) || age > 90+2*30 { // a file has 25 seconds
				t.Errorf("the oldest second of %d is %d seconds old", n, age)
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
		metriclog.Options{Dir: r.dir, MaxAge: 90 * time.Second}) // its file has room
	if r.seconds(t, 1); len(r.files(t)) != 2 || len(got) < 8 {
		t.Errorf("%v, later %v", got, r.files(t))
	}
	r.checkIndexes(t)
}

// Files of other applications, of other processes and of no log stay, however old they are.
func TestRetentionKeepsOtherFiles(t *testing.T) {
	dir := t.TempDir()
	foreign := []string{
		"other-metrics.log.2025-01-01",
		"other-metrics.log.pid7.2025-01-01",
		"shop-metrics.log.2025-01-01.bak",
		"shop-metrics.log.pid9.2025-01-01",
	}
	for _, name := range append(foreign, "shop-metrics.log.2025-01-01") {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("1735689600000|2025-01-01 00:00:00|a|1|1|1|1|1|1|1|0\n"), 0o644); err != nil {
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

// Two processes never write one log.
func TestLockedLog(t *testing.T) {
	r := newRig(t, start, metriclog.Options{})
	r.seconds(t, 1)
	_, err := metriclog.New(r.Collector, metriclog.Options{Dir: r.dir, App: "shop"})
	if err == nil || !strings.Contains(err.Error(), "shop-metrics.log.lck: another process writes this log") {
		t.Errorf("%v", err)
	}
	if _, err := metriclog.Last(metriclog.Options{Dir: r.dir, App: "shop"}); err == nil {
		t.Error("Last repairs what another process writes")
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
