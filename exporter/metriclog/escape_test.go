package metriclog_test

import (
	"bytes"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/node"
)

// Escaped names have no byte that ends a field or that a terminal interprets. Reading them returns the original names.
func TestNamesAreEscaped(t *testing.T) {
	dir := t.TempDir()
	a, err := metriclog.NewArchive(metriclog.Options{Dir: dir, App: "shop", Location: time.UTC})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for c := range 0x80 {
		names = append(names, fmt.Sprintf("a%cb", c))
	}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	rows := iter.Seq2[string, *node.MetricNode](func(yield func(string, *node.MetricNode) bool) {
		for _, name := range names {
			if !yield(name, &node.MetricNode{Start: at, Counts: node.Counts{Pass: 1}}) {
				return
			}
		}
	})
	if err := a.Append(at, rows); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "shop-metrics.log.*[0-9]"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	if len(lines) != len(names) {
		t.Errorf("%d lines for %d names", len(lines), len(names))
	}
	for _, line := range lines {
		if i := bytes.IndexFunc(line, func(r rune) bool { return r < ' ' || r == 0x7f }); i >= 0 ||
			bytes.Count(line, []byte("|")) != 10 {
			t.Errorf("line %q has a control character or a wrong number of fields", line)
		}
	}
	var got []string
	for _, row := range allRows(t, dir) {
		got = append(got, row.Resource)
	}
	if slices.Sort(got); !slices.Equal(got, names) {
		t.Errorf("read back:\n%q\nwant:\n%q", strings.Join(got, " "), strings.Join(names, " "))
	}
}

// allRows returns all rows of a log.
func allRows(t *testing.T, dir string) (all []metriclog.Row) {
	t.Helper()
	rows, err := metriclog.Searcher{Dir: dir}.Search(metriclog.Query{})
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // opened for reading only
	for row := range rows.All() {
		all = append(all, row)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
