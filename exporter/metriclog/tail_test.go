package metriclog_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

// tailed appends text to the file at path and returns the resources of the rows that the tail then reads.
func tailed(t *testing.T, tail *metriclog.Tail, path, text string) (names []string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	err = tail.Read(func(r *metriclog.Row) bool {
		names = append(names, r.Resource)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// A Tail returns each complete line once. It waits for the rest of a line, and counts malformed and too long lines.
func TestTail(t *testing.T) {
	dir := t.TempDir()
	const name = "shop-metrics.log.pid7.2026-01-02"
	path := filepath.Join(dir, name)
	tail, err := metriclog.NewTail(dir, metriclog.File{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	if err := tail.Read(nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v of a file that does not exist", err)
	}
	const second = "1767355200000|2026-01-02 12:00:00|"
	for _, step := range []struct {
		text      string
		want      []string
		malformed int64
	}{
		{second + "a|1|2|3|0|5|0|0|0\n" + second + "b|1|2|3", []string{"a"}, 0},
		{"|0|5|0|0|0\n", []string{"b"}, 0},
		{"", nil, 0},
		{"not a row\n" + second + "c|1|2|3|0|5|0|0|0\n\n", []string{"c"}, 1},
		{"1600000000000|2020-09-13 12:00:00|other day|1|2|3|0|5|0|0|0\n", nil, 2},
		{strings.Repeat("x", 300<<10), nil, 2},
		{strings.Repeat("x", 300<<10) + "\n" + second + "d|1|2|3|0|5|0|0|0\n", []string{"d"}, 3},
		{second + strings.Repeat("y", 70<<10) + "|1|2|3|0|5\n" + second + "e|1|2|3|0|5\n", []string{"e"}, 4},
		{"torn by a crash" + second + "f|1|2|3|0|5|0|0|0\n" + second + "\xff|1|2|3|0|5\n", []string{"\xff"}, 5},
		{"1767355200000|/c++|1|2|3|0|5\n1767355200000|/c++ too|1|2|3|0\n", []string{"/c++"}, 6},
	} {
		if got := tailed(t, tail, path, step.text); !slices.Equal(got, step.want) ||
			tail.Malformed() != step.malformed {
			t.Errorf("after %.60q: %.40q and %d malformed lines, want %q and %d",
				step.text, got, tail.Malformed(), step.want, step.malformed)
		}
	}
	// Another file takes the name: it is read from its first line.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if got := tailed(t, tail, path, second+"new|1|2|3|0|5|0|0|0\n"); !slices.Equal(got, []string{"new"}) {
		t.Errorf("the new file has %q", got)
	}
	if _, err := metriclog.NewTail(dir, metriclog.File{Name: "shop.txt"}); err == nil {
		t.Error("a tail of another file")
	}
}

// Seek skips earlier rows by the index. A row that is refused is the first one of the next call.
func TestTailSeek(t *testing.T) {
	dir := t.TempDir()
	begin := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	log, err := metriclog.NewArchive(metriclog.Options{Dir: dir, App: "shop", Location: time.UTC})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		at := begin.Add(time.Duration(i) * time.Second)
		if err := log.Append(at, secondRows(at, 1)); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := metriclog.Searcher{Dir: dir, App: "shop"}.Files()
	if err != nil || len(files) != 1 || files[0].App != "shop" {
		t.Fatalf("%v, %v", files, err)
	}
	for _, index := range []bool{true, false} {
		if !index {
			if err := os.Remove(filepath.Join(dir, files[0].Name+".idx")); err != nil {
				t.Fatal(err)
			}
		}
		tail, err := metriclog.NewTail(dir, files[0])
		if err == nil {
			err = tail.Seek(begin.Add(90 * time.Second))
		}
		if err != nil {
			t.Fatal(err)
		}
		var read []int
		for len(read) == 0 || read[len(read)-1] < 99 {
			taken := 0
			if err := tail.Read(func(r *metriclog.Row) bool {
				if taken++; taken > 3 {
					return false
				}
				if r.Resource == collector.InboundTotal { // the last row of each second
					read = append(read, int(r.Start.Sub(begin)/time.Second))
				}
				return true
			}); err != nil {
				t.Fatal(err)
			}
		}
		if first := read[0]; index && first < 88 || !index && first != 0 {
			t.Errorf("index %t: reading begins with second %d", index, first)
		}
		for i, second := range read {
			if second != read[0]+i {
				t.Fatalf("index %t: the seconds are %v", index, read)
			}
		}
	}
}
