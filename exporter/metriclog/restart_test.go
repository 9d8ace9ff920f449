package metriclog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// A restart continues the same segment. It removes only the incomplete end that a crash left.
func TestRestart(t *testing.T) {
	r := newRig(t, start, metriclog.Options{})
	for range 3 {
		r.calls("a", 1, ms)
		r.now = r.now.Add(time.Second)
		r.flush(t)
	}
	whole := r.read(t, today)
	path := filepath.Join(r.dir, today)
	os.WriteFile(path, []byte(whole+"17673230480"), 0o644)
	idx := r.read(t, today+".idx")
	os.WriteFile(path+".idx", []byte(idx+"torn"), 0o644)

	again := r
	for range 8 { // more restarts than MaxFiles
		again = again.restart(t, r.now)
		if got := again.read(t, today); got != whole {
			t.Fatalf("after the restart:\n%swant\n%s", got, whole)
		}
		if got := again.metrics()["metriclog_last_second_timestamp_seconds"]; got != 1767323047 {
			t.Errorf("last second %v", got)
		}
	}
	again = again.restart(t, r.now)
	again.calls("b", 1, ms)
	again.now = again.now.Add(time.Second)
	again.flush(t)
	if rows := again.checkIndexes(t); rows != 4 || len(again.files(t)) != 2 {
		t.Errorf("%d rows in %v", rows, again.files(t))
	}
}

// After any crash or power cut, the log has each second either completely or not at all. Later seconds are readable.
func TestRestartAfterCrashAnywhere(t *testing.T) {
	r := newRig(t, start, metriclog.Options{})
	for i := range 4 {
		for _, name := range []string{"a", "b", "c"}[:i%3+1] {
			r.calls(name, i+1, ms)
		}
		r.now = r.now.Truncate(time.Second).Add(time.Second)
		r.flush(t)
	}
	data, idx := r.read(t, today), r.read(t, today+".idx")
	write := func(dir, data, idx string) {
		os.MkdirAll(dir, 0o755)
		os.WriteFile(filepath.Join(dir, today), []byte(data), 0o644)
		os.WriteFile(filepath.Join(dir, today+".idx"), []byte(idx), 0o644)
	}
	check := func(what, d, i string) {
		t.Helper()
		dir := t.TempDir()
		write(dir, d, i)
		again := newRig(t, r.now.Add(time.Minute), metriclog.Options{Dir: dir})
		again.calls("z", 1, ms)
		again.now = again.now.Add(time.Second)
		again.flush(t)
		perSecond := map[string]int{}
		files, err := again.Files()
		if err != nil {
			t.Fatal(err)
		}
		all, err := os.ReadFile(files[0])
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(all)) {
			row, err := metriclog.Parse(line)
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if row.Start.Before(r.now) {
				perSecond[row.Start.Format("05")]++
			}
		}
		for second, rows := range perSecond {
			if want := map[string]int{"05": 2, "06": 3, "07": 4, "08": 2}[second]; rows != want {
				t.Errorf("%s: second %s has %d rows, want %d or none", what, second, rows, want)
			}
		}
	}
	step := 7
	if testing.Short() {
		step = 23
	}
	for cut := range len(data) {
		if cut%step != 0 && !strings.Contains(data[max(cut-2, 0):cut+1], "\n") {
			continue
		}
		check(fmt.Sprintf("data cut at %d", cut), data[:cut], idx)
		check(fmt.Sprintf("data zero from %d", cut), data[:cut]+strings.Repeat("\x00", len(data)-cut), idx)
	}
	for cut := 16; cut < len(idx); cut += step {
		check(fmt.Sprintf("index cut at %d", cut), data, idx[:cut])
	}
	check("zeros after the end", data+strings.Repeat("\x00", 100_000), idx)
}

// A restart replaces a missing or foreign index, so no complete second disappears.
func TestRestartWithInvalidIndex(t *testing.T) {
	for _, cut := range []func(idx string) string{
		func(string) string { return "" },
		func(string) string { return "short" },
		func(idx string) string { return strings.Repeat("x", len(idx)) },
		func(idx string) string { return idx[:16] },
		func(idx string) string { return idx[:len(idx)-8] + idx[:8] },
	} {
		for seconds := 1; seconds < 4; seconds++ {
			r := newRig(t, start, metriclog.Options{})
			for range seconds {
				r.calls("a", 1, ms)
				r.now = r.now.Add(999 * ms)
				r.flush(t)
			}
			data, idx := r.read(t, today), r.read(t, today+".idx")
			os.WriteFile(filepath.Join(r.dir, today), []byte(data+"17673"), 0o644)
			os.WriteFile(filepath.Join(r.dir, today+".idx"), []byte(cut(idx)), 0o644)
			again := r.restart(t, r.now.Add(time.Minute))
			again.calls("a", 1, ms)
			again.now = again.now.Add(time.Second)
			again.flush(t)
			if got := again.read(t, today); !strings.HasPrefix(got, data+"1767323") {
				t.Errorf("%d seconds, index %q: %q became %q", seconds, cut(idx), data, got)
			}
			if rows := again.checkIndexes(t); rows != seconds+1 {
				t.Errorf("%d seconds, index %q: %d rows in %v", seconds, cut(idx), rows, again.files(t))
			}
		}
	}
}

// A restart keeps the lines of a segment that another program wrote, or that has unreadable lines. It writes an index
// and appends to the segment.
func TestRestartWithForeignSegment(t *testing.T) {
	for _, data := range []string{
		"1767323000000|2026-01-02 03:03:20|a|1|0|1|0|1|0|1|0\n1767323001000|2026-01-02 03:03:21|a|1|0|1|0|1|0|1|0\n",
		"1767323000000|x|__total_inbound_traffic__|1|0|1|0|1|0|1|0\ngarbage\n" +
			"1767323001000|x|__total_inbound_traffic__|1|0|1|0|1|0|1|0\n" +
			"1767323002000|x|__total_inbound_traffic__|1|0|1|0|1|0|1|0\n",
	} {
		for _, idx := range []string{"", "short"} {
			dir := t.TempDir()
			os.WriteFile(filepath.Join(dir, today), []byte(data), 0o644)
			os.WriteFile(filepath.Join(dir, today+".idx"), []byte(idx), 0o644)
			r := newRig(t, start, metriclog.Options{Dir: dir})
			last := int64(1767323000 + strings.Count(data, "\n")/2)
			if got := r.metrics()["metriclog_last_second_timestamp_seconds"]; got != float64(last) {
				t.Errorf("last second %v of %q", got, data)
			}
			r.calls("a", 1, ms)
			r.now = r.now.Add(time.Second)
			r.flush(t)
			if got, ours := strings.CutPrefix(r.read(t, today), data); !ours || strings.Count(got, "\n") != 2 {
				t.Errorf("%q became %q", data, r.read(t, today))
			}
			var want []int64
			for second := int64(1767323000); second <= last; second++ {
				want = append(want, second)
			}
			want = append(want, 1767323045)
			if seconds, _ := r.index(t, today); !slices.Equal(seconds, want) {
				t.Errorf("the index has %v, want %v", seconds, want)
			}
		}
	}
}

// The last second of the log is found if the newest segment is empty.
func TestLastSecondWithEmptySegment(t *testing.T) {
	r := newRig(t, start, metriclog.Options{})
	r.calls("a", 1, ms)
	r.now = r.now.Add(time.Second)
	r.flush(t)
	os.WriteFile(filepath.Join(r.dir, today+".1"), nil, 0o644)
	os.Mkdir(filepath.Join(r.dir, today+".2"), 0o755) // a directory is not a segment
	again := r.restart(t, r.now)
	if got := again.metrics()["metriclog_last_second_timestamp_seconds"]; got != 1767323045 {
		t.Errorf("last second %v", got)
	}
}
