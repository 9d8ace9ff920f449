package metriclog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Span reads the first and the last second of logs from the ends of their segments. It skips unreadable segments.
func TestSpan(t *testing.T) {
	dir := t.TempDir()
	span := func(app string, pids ...int) string {
		t.Helper()
		first, last, err := Searcher{Dir: dir, App: app}.Span(pids...)
		if err != nil {
			t.Fatal(err)
		}
		if first.IsZero() && last.IsZero() {
			return ""
		}
		return fmt.Sprintf("%d - %d", first.Unix(), last.Unix())
	}
	if got := span(""); got != "" {
		t.Errorf("span of an empty directory: %s", got)
	}
	shop := newProcess(t, dir, "shop", 0, 300, time.UTC)
	other := newProcess(t, dir, "shop", 7, 300, time.UTC)
	till := newProcess(t, dir, "till", 0, 1<<20, time.UTC) // starts before the other logs and ends after them
	for i := range int64(40) {
		if err := till.second(1767322990+i, "a"); err != nil {
			t.Fatal(err)
		}
	}
	for i := range int64(20) {
		for _, p := range []*process{shop, other} {
			begin := int64(1767323000)
			if p == other {
				begin += 5
			}
			if err := p.second(begin+i, "a", "b"); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tc := range []struct {
		app  string
		pids []int
		want string
	}{
		{"", nil, "1767322990 - 1767323029"},
		{"shop", []int{7}, "1767323005 - 1767323024"},
		{"shop", []int{0}, "1767323000 - 1767323019"},
		{"till", []int{7}, ""},
		{"shop", nil, "1767323000 - 1767323024"},
	} {
		if got := span(tc.app, tc.pids...); got != tc.want {
			t.Errorf("%q %v: %q, want %q", tc.app, tc.pids, got, tc.want)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "shop-metrics.log.pid7.*.idx"))
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, idx := range files {
		if err := os.Remove(idx); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(filepath.Base(idx), idx); err != nil { // the link to itself cannot be opened
			t.Skip(err)
		}
	}
	if got := span("shop"); got != "1767323000 - 1767323024" {
		t.Errorf("unreadable indexes: %s", got)
	}
	for _, idx := range files {
		path := strings.TrimSuffix(idx, idxSuffix)
		if err := errors.Join(os.Remove(path), os.Symlink(filepath.Base(path), path)); err != nil {
			t.Fatal(err)
		}
	}
	if got := span("shop"); got != "1767323000 - 1767323019" {
		t.Errorf("unreadable files: %s", got)
	}
	if _, _, err := (Searcher{Dir: dir + "/no"}).Span(); err == nil {
		t.Error("no error without a directory")
	}
}

// Each does not allocate memory per row. Line returns lines unchanged, also lines of older versions.
func TestEachDoesNotAllocatePerRow(t *testing.T) {
	dir := t.TempDir()
	var lines strings.Builder
	const seconds, resources = 100, 50
	for second := range seconds {
		for i := range resources {
			fmt.Fprintf(&lines, "%d000|any date|r\\%d|1|0|1|0|007\n", 1767323000+second, i)
		}
	}
	path := filepath.Join(dir, "shop-metrics.log.2026-01-02")
	if err := os.WriteFile(path, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	search := func(f func(*Rows, *Row)) {
		rows, err := Searcher{Dir: dir}.Search(Query{})
		if err != nil {
			t.Fatal(err)
		}
		err = rows.Each(context.Background(), func(r *Row) error { f(rows, r); return nil })
		if err != nil || rows.Err() != nil || rows.Malformed() > 0 {
			t.Fatal(err, rows.Err(), rows.Malformed())
		}
	}
	search(func(rows *Rows, _ *Row) {
		got.Write(rows.Line())
		got.WriteByte('\n')
	})
	if got.String() != lines.String() {
		t.Errorf("lines differ from the file:\n%.300s", got.String())
	}
	allocs := testing.AllocsPerRun(5, func() { search(func(*Rows, *Row) {}) })
	if most := float64(resources*5 + seconds); allocs > most { // some allocations per name are allowed
		t.Errorf("%.0f allocations for %d rows", allocs, seconds*resources)
	}
}
