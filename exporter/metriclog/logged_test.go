package metriclog_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/node"
)

// logged writes a log of ten seconds in several segments, applies damage to the segments, and returns the Writer of a
// second process that has logged three seconds.
func logged(t *testing.T, damage func(files []string)) (w *metriclog.Writer, first int64) {
	t.Helper()
	at := time.Date(2026, 1, 2, 23, 59, 55, 0, time.UTC)
	o := metriclog.Options{Dir: t.TempDir(), App: "shop", MaxFileSize: 200, MaxFiles: 100, Location: time.UTC}
	newWriter := func() (*metriclog.Writer, *collector.Collector) {
		last, err := metriclog.Last(o)
		if err != nil {
			t.Fatal(err)
		}
		c, err := collector.New(collector.Options{Now: func() time.Time { return at }, After: last})
		if err != nil {
			t.Fatal(err)
		}
		w, err := metriclog.New(c, o)
		if err != nil {
			t.Fatal(err)
		}
		return w, c
	}
	first = at.Unix()
	w, c := newWriter()
	for i := range 10 {
		for range i + 1 {
			c.Resource("a").Block("")
		}
		at = at.Add(time.Second)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	files, err := w.Files()
	if err != nil || len(files) < 4 {
		t.Fatalf("%v: %v", files, err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if damage != nil {
		damage(files)
	}
	w, c = newWriter()
	for range 3 { // seconds of the second process
		c.Resource("a").Block("")
		at = at.Add(time.Second)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return w, first
}

// loggedBlocks returns the seconds and the blocked calls that Logged reports for [from, to). All seconds are relative
// to first. It stops after most rows.
func loggedBlocks(w *metriclog.Writer, first, from, to int64, most int) string {
	var got []string
	w.Logged(first+from, first+to, func(resource string, m *node.MetricNode) bool {
		if resource == "a" {
			got = append(got, fmt.Sprintf("%d:%d", m.Start.Unix()-first, m.Block))
		}
		return len(got) < most
	})
	return strings.Join(got, " ")
}

// Logged returns the rows in the half-open range, from the seconds of both processes, and stops when f returns false.
// Written returns the end of the last written second.
func TestLogged(t *testing.T) {
	w, first := logged(t, nil)
	for _, tc := range []struct {
		from, to int64
		most     int
		want     string
	}{
		{-100, 100, 100, "0:1 1:2 2:3 3:4 4:5 5:6 6:7 7:8 8:9 9:10 10:1 11:1 12:1"},
		{-100, 10, 100, "0:1 1:2 2:3 3:4 4:5 5:6 6:7 7:8 8:9 9:10"},
		{3, 6, 100, "3:4 4:5 5:6"},
		{0, 1, 100, "0:1"},
		{9, 100, 100, "9:10 10:1 11:1 12:1"},
		{13, 100, 100, ""},
		{5, 5, 100, ""},
		{2, 100, 3, "2:3 3:4 4:5"},
	} {
		if got := loggedBlocks(w, first, tc.from, tc.to, tc.most); got != tc.want {
			t.Errorf("from %d to %d: %s, want %s", tc.from, tc.to, got, tc.want)
		}
	}
	if got := w.Written() - first; got != 13 {
		t.Errorf("Written is %d seconds after the first one, want 13", got)
	}
}

// Logged omits damaged lines and missing segments.
func TestLoggedDamagedFiles(t *testing.T) {
	const all = "0:1 1:2 2:3 3:4 4:5 5:6 6:7 7:8 8:9 9:10"
	write := func(path string, change func(string) string) {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(change(string(b))), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	future := fmt.Sprintf("%d|2126-01-02 03:04:05|a|1|1|1|1|1|1|1|0\n",
		time.Date(2126, 1, 2, 3, 4, 5, 0, time.UTC).UnixMilli())
	for name, tc := range map[string]struct {
		damage func(files []string)
		want   string
	}{
		"no index": {func(f []string) { _ = os.Remove(f[1] + ".idx") }, all},
		"an invalid index": {func(f []string) {
			write(f[1]+".idx", func(s string) string { return strings.Repeat("\xff", len(s)) })
		}, all},
		"a truncated index": {func(f []string) {
			write(f[1]+".idx", func(s string) string { return s[:len(s)-5] })
		}, all},
		"a row of the future": {func(f []string) {
			write(f[0], func(s string) string { return future + s })
		}, all},
		"malformed lines": {func(f []string) {
			write(f[0], func(s string) string { return "x\n\n||||\n" + s })
		}, all},
		"a missing file": {func(f []string) { _ = os.Remove(f[0]) }, ""},
		"a name that is not UTF-8": {func(f []string) {
			write(f[0], func(s string) string { return strings.ReplaceAll(s, "|a|", "|\xff|") })
		}, ""},
	} {
		var lost []string
		w, first := logged(t, func(files []string) {
			b, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			for i := range strings.Count(string(b), "|a|") {
				lost = append(lost, strings.Fields(all)[i])
			}
			tc.damage(files)
		})
		want := tc.want
		if want == "" { // all rows except the rows of the first segment
			want = strings.Join(
				slices.DeleteFunc(strings.Fields(all), func(s string) bool { return slices.Contains(lost, s) }), " ")
		}
		if got := loggedBlocks(w, first, -100, 10, 100); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
