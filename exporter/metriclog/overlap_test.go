package metriclog

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// Segments of one log overlap if a clock was set back or two processes wrote the log. A search that starts after the
// first second of the next segment must return the rest of the segment before. Rows are in the order of the segments.
func TestSearchOverlappingSegments(t *testing.T) {
	const begin = 1767322990
	dir, name := t.TempDir(), "shop-metrics.log."+time.Unix(begin, 0).UTC().Format(time.DateOnly)
	for i, seconds := range [][2]int64{{0, 100}, {20, 60}, {50, 160}, {161, 170}} {
		p := newProcess(t, t.TempDir(), "shop", 0, 1<<20, time.UTC)
		for s := seconds[0]; s < seconds[1]; s++ {
			if err := p.second(begin+s, strings.Repeat("a", i+1), "b"); err != nil {
				t.Fatal(err)
			}
		}
		to := filepath.Join(dir, name+[]string{"", ".1", ".2", ".3"}[i])
		for _, suffix := range []string{"", idxSuffix} {
			b, err := os.ReadFile(filepath.Join(p.Dir, name+suffix))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(to+suffix, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	var all []Row
	for _, n := range []string{"", ".1", ".2", ".3"} {
		b, err := os.ReadFile(filepath.Join(dir, name+n))
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			row, err := Parse(line)
			if err != nil {
				t.Fatal(err)
			}
			row.App = "shop"
			all = append(all, row)
		}
	}
	for _, from := range []int64{0, 10, 21, 55, 70, 120, 165} {
		var want []Row
		for _, row := range all {
			if row.Start.Unix() >= begin+from {
				want = append(want, row)
			}
		}
		rows, err := Searcher{Dir: dir}.Search(Query{From: time.Unix(begin+from, 0)})
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Collect(rows.All()); !slices.Equal(got, want) || rows.Err() != nil || rows.Malformed() > 0 {
			t.Errorf("from %d: %d rows, want %d; %v", from, len(got), len(want), rows.Err())
		}
	}
	// The newest segment does not always have the last second of the log.
	for _, n := range []struct {
		removed string // suffix of the segment
		last    int64
	}{{"", 169}, {".3", 159}, {".2", 99}} {
		if n.removed != "" {
			path := filepath.Join(dir, name+n.removed)
			if err := errors.Join(os.Remove(path), os.Remove(path+idxSuffix)); err != nil {
				t.Fatal(err)
			}
		}
		if last, err := Last(Options{Dir: dir, App: "shop"}); err != nil || last.Unix() != begin+n.last {
			t.Errorf("last second without segment %q: %d, %v", n.removed, last.Unix()-begin, err)
		}
	}
}
