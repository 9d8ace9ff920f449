package metriclog_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

const ms = time.Millisecond

// rig is a service with a log, and a clock that the test sets.
type rig struct {
	*collector.Collector
	*metriclog.Writer
	now time.Time
	dir string
	log strings.Builder
}

func newRig(t *testing.T, start time.Time, o metriclog.Options) *rig {
	t.Helper()
	r := &rig{now: start, dir: o.Dir}
	var err error
	if r.Collector, err = collector.New(collector.Options{Now: func() time.Time { return r.now }}); err != nil {
		t.Fatal(err)
	}
	if r.dir == "" {
		r.dir = filepath.Join(t.TempDir(), "new", "dir")
		o.Dir = r.dir
	}
	if o.App == "" {
		o.App = "shop"
	}
	if o.Location == nil {
		o.Location = time.UTC
	}
	o.Logger = slog.New(slog.NewTextHandler(&r.log, nil))
	if r.Writer, err = metriclog.New(r.Collector, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Writer.Close() })
	return r
}

// restart closes the log and returns the service after a restart.
func (r *rig) restart(t *testing.T, now time.Time) *rig {
	t.Helper()
	r.Writer.Close()
	return newRig(t, now, metriclog.Options{Dir: r.dir})
}

func (r *rig) calls(resource string, n int, rt time.Duration) {
	for range n {
		e := r.Resource(resource).Enter()
		r.now = r.now.Add(rt)
		e.Exit(nil)
	}
}

func (r *rig) flush(t *testing.T) {
	t.Helper()
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
}

// seconds writes n seconds. Each has one row of a resource and the row of inbound traffic.
func (r *rig) seconds(t *testing.T, n int) {
	t.Helper()
	for range n {
		r.calls("a", 1, ms)
		r.now = r.now.Truncate(time.Second).Add(time.Second)
		r.flush(t)
	}
}

// files returns the names of segments, indexes and other files in the directory, sorted, without the lock file and the
// runs file.
func (r *rig) files(t *testing.T) []string {
	t.Helper()
	entries, err := os.ReadDir(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".lck") && !strings.HasSuffix(e.Name(), "-runs.json") {
			names = append(names, e.Name())
		}
	}
	return names
}

func (r *rig) read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// metrics returns the metrics that the Writer publishes about itself.
func (r *rig) metrics() map[string]float64 {
	return r.Counts()
}

var start = time.Date(2026, 1, 2, 3, 4, 5, 100e6, time.UTC)

const today = "shop-metrics.log.2026-01-02"

func TestLines(t *testing.T) {
	r := newRig(t, start, metriclog.Options{})
	r.calls("checkout", 3, 7*ms)
	r.Resource("checkout").Block("")
	_ = r.Resource("cart").Do(func() error { r.now = r.now.Add(2500 * time.Microsecond); return errors.New("x") })
	r.Resource("idle")
	long := r.Resource("long|\n\x00name").Enter()
	if r.flush(t); len(r.files(t)) != 0 {
		t.Errorf("the open second was written: %v", r.files(t))
	}
	r.now = r.now.Add(time.Second)
	r.flush(t)
	r.now = r.now.Add(2 * time.Second)
	long.Exit(nil)
	r.now = r.now.Add(time.Second)
	r.flush(t)
	r.flush(t)
	want := strings.ReplaceAll(`1767323045000|2026-01-02 03:04:05|checkout|3|1|3|0|7|0|1|0
1767323045000|2026-01-02 03:04:05|cart|1|0|1|1|2|0|1|0
1767323045000|2026-01-02 03:04:05|long\x7c\x0a\x00name|1|0|0|0|0|0|1|0
1767323045000|2026-01-02 03:04:05|__total_inbound_traffic__|0|0|0|0|0|0|0|0|RUN
1767323046000|2026-01-02 03:04:06|long\x7c\x0a\x00name|0|0|0|0|0|0|1|0
1767323046000|2026-01-02 03:04:06|__total_inbound_traffic__|0|0|0|0|0|0|0|0|RUN
1767323047000|2026-01-02 03:04:07|long\x7c\x0a\x00name|0|0|0|0|0|0|1|0
1767323047000|2026-01-02 03:04:07|__total_inbound_traffic__|0|0|0|0|0|0|0|0|RUN
1767323048000|2026-01-02 03:04:08|long\x7c\x0a\x00name|0|0|1|0|3000|0|1|0
1767323048000|2026-01-02 03:04:08|__total_inbound_traffic__|0|0|0|0|0|0|0|0|RUN
`, "RUN", fmt.Sprint(r.RunID()))
	if got := r.read(t, today); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	metrics := r.metrics()
	if metrics["metriclog_rows_total"] != 10 || metrics["metriclog_seconds_total"] != 4 ||
		metrics["metriclog_errors_total"] != 0 ||
		metrics["metriclog_lost_seconds_total"] != 0 ||
		metrics["metriclog_last_second_timestamp_seconds"] != 1767323048 {
		t.Errorf("self-metrics %v", metrics)
	}
}

func TestParse(t *testing.T) {
	row, err := metriclog.Parse("1767323045000|2026-01-02 03:04:05|GET /a|3|1|2|1|7|4|5|0\n")
	want := metriclog.Row{
		Start: time.Unix(1767323045, 0).UTC(), Resource: "GET /a",
		Pass: 3, Block: 1, Success: 2, Exception: 1, RT: 7 * ms, OccupiedPass: 4, Concurrency: 5,
	}
	if err != nil || row != want {
		t.Errorf("%+v, %v", row, err)
	}
	total, err := metriclog.Parse(
		"1767323045000|2026-01-02 03:04:05|__total_inbound_traffic__|3|1|2|1|7|4|5|0|7238955192732475\n")
	if err != nil || total.Run != 7238955192732475 || total.Concurrency != 5 {
		t.Errorf("%+v, %v", total, err)
	}
	const most = 1<<63 - 1 // counts saturate at this value
	row, err = metriclog.Parse(
		"1|d|r|9223372036854775807|1|9223372036854775807|1|1|9223372036854775807|9223372036854775807|0")
	if err != nil || row.Pass != most || row.Success != most || row.OccupiedPass != most || row.Concurrency != most {
		t.Errorf("%+v, %v", row, err)
	}
	for _, line := range []string{
		"1|d|r|9223372036854775808|1|1|1|1|1|1|0",
		"",
		"1|d|r|1|1|1|1|1|1|1|0|0|0",
		"1|d|r|1|1|1|1|1|1|1|0|x",
		"1|d|r|1|1|1|1",
		"x|d|r|1|1|1|1|1|1|1|0",
		"1x|d|r|1|1|1|1|1|1|1|0",
		"1|d|r|1|1|-|1|1|1|1|0",
		"1|d|r|1|1|1|1|18446744073709551615|1|1|0", // Sentinel Go, after the clock was set back
		"1|d|r|1|1|1|1|9223372036854775807|1|1|0",
		"1|d|r|1|1|1|1|1|1|99999999999999999999|0",
		"1|d|r|1||1|1|1|1|1|0",
		"1|d|r|1|1|1|1|1|1|1|",
		"1|d|r|1|1|1|1|1|1|1x1",
		"1|d|r",
		"1|d",
	} {
		if _, err := metriclog.Parse(line); err == nil {
			t.Errorf("no error for %q", line)
		}
	}
}

// index returns the records of an index.
func (r *rig) index(t *testing.T, name string) (seconds, offsets []int64) {
	t.Helper()
	b := r.read(t, name+".idx")
	if len(b)%16 != 0 {
		t.Fatalf("index of %d bytes", len(b))
	}
	for ; b != ""; b = b[16:] {
		seconds = append(seconds, int64(binary.BigEndian.Uint64([]byte(b[:8]))))
		offsets = append(offsets, int64(binary.BigEndian.Uint64([]byte(b[8:16]))))
	}
	return seconds, offsets
}

// checkIndexes checks that each record of each index points at the first line of its second, and that seconds ascend.
// It returns the number of rows of resources.
func (r *rig) checkIndexes(t *testing.T) (rows int) {
	t.Helper()
	for _, name := range r.files(t) {
		if strings.HasSuffix(name, ".idx") {
			continue
		}
		data := r.read(t, name)
		var firsts []string
		last := ""
		for line := range strings.Lines(data) {
			want := 12 // with the run
			if !strings.Contains(line, "|"+collector.InboundTotal+"|") {
				want = 11
				rows++
			}
			stamp, _, _ := strings.Cut(line, "|")
			if stamp < last {
				t.Errorf("%s: %s follows %s", name, stamp, last)
			}
			if stamp != last {
				firsts = append(firsts, stamp)
			}
			if fields := strings.Count(line, "|") + 1; fields != want ||
				want == 11 && !strings.HasSuffix(line, "|0\n") {
				t.Errorf("%s: %d fields in %q", name, fields, line)
			}
			last = stamp
		}
		seconds, offsets := r.index(t, name)
		if len(seconds) != len(firsts) {
			t.Errorf("%s: %d seconds and %d index records", name, len(firsts), len(seconds))
			continue
		}
		for i, s := range seconds {
			stamp := strconv.FormatInt(s*1000, 10)
			at := data[offsets[i]:]
			if stamp != firsts[i] || !strings.HasPrefix(at, stamp+"|") || offsets[i] > 0 && data[offsets[i]-1] != '\n' {
				t.Errorf("%s: record %d (%d, %d) points at %.40q", name, i, s, offsets[i], at)
			}
		}
	}
	return rows
}

func TestIndexRotationAndRetention(t *testing.T) {
	r := newRig(t, start, metriclog.Options{MaxFileSize: 200, MaxFiles: 3})
	os.WriteFile(filepath.Join(r.dir, "othershop-metrics.log.2025-01-01"), nil, 0o644)
	os.WriteFile(filepath.Join(r.dir, "shop-metrics.log.2025-01-01.x"), nil, 0o644)
	for range 60 { // a segment has four lines of two seconds
		r.calls("a", 1, ms)
		r.now = r.now.Add(time.Second)
		r.flush(t)
	}
	want := []string{
		"othershop-metrics.log.2025-01-01", "shop-metrics.log.2025-01-01.x",
		today + ".27", today + ".27.idx", today + ".28", today + ".28.idx", today + ".29", today + ".29.idx",
	}
	if got := r.files(t); !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
	for _, name := range want[:2] {
		os.Remove(filepath.Join(r.dir, name))
	}
	if rows := r.checkIndexes(t); rows != 6 {
		t.Errorf("%d rows kept, want 6", rows)
	}
}

// A new segment begins at local midnight. (Sentinel indexes the first second of a day in the previous segment.)
func TestMidnight(t *testing.T) {
	zone := time.FixedZone("x", 5*3600+1800)
	midnight := time.Date(2026, 3, 1, 0, 0, 0, 0, zone)
	r := newRig(t, midnight.Add(-3*time.Second), metriclog.Options{Location: zone})
	for range 6 {
		r.calls("a", 1, ms)
		r.now = r.now.Add(999 * ms)
	}
	r.flush(t)
	if rows := r.checkIndexes(t); rows != 6 {
		t.Errorf("%d rows", rows)
	}
	for name, first := range map[string]int64{"shop-metrics.log.2026-02-28": -3, "shop-metrics.log.2026-03-01": 0} {
		seconds, offsets := r.index(t, name)
		if len(seconds) != 3 || seconds[0] != midnight.Unix()+first || offsets[0] != 0 {
			t.Errorf("%s begins with second %d at offset %d", name, seconds[0]-midnight.Unix(), offsets[0])
		}
	}
}

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

// The Writer creates deleted, moved and truncated files and directories again. It loses no later second.
func TestDeletedFilesAreCreatedAgain(t *testing.T) {
	for name, take := range map[string]func(dir string) error{
		"file": func(dir string) error { return os.Remove(filepath.Join(dir, today)) },
		"both": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, today)), os.Remove(filepath.Join(dir, today+".idx")))
		},
		"directory": os.RemoveAll,
		"moved":     func(dir string) error { return os.Rename(filepath.Join(dir, today), filepath.Join(dir, "old")) },
		"truncated": func(dir string) error { return os.Truncate(filepath.Join(dir, today), 0) },
		"cut":       func(dir string) error { return os.Truncate(filepath.Join(dir, today), 150) },
		"cut index": func(dir string) error { return os.Truncate(filepath.Join(dir, today+".idx"), 20) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, start, metriclog.Options{})
			second := func(n int) {
				for range n {
					r.calls("a", 1, ms)
					r.now = r.now.Add(999 * ms)
					r.flush(t)
				}
			}
			second(5)
			if err := take(r.dir); err != nil {
				t.Fatal(err)
			}
			second(5)
			os.Remove(filepath.Join(r.dir, "old"))
			want := 5
			switch name {
			case "cut":
				want = 6 // the first second remains complete
			case "cut index":
				want = 10 // all seconds remain, and the index is written again
			}
			if rows := r.checkIndexes(t); rows != want {
				t.Errorf("%d rows, want %d: %v", rows, want, r.files(t))
			}
		})
	}
}

// After a restart with the clock set back, no second gets a second row.
func TestSecondsAreNotWrittenTwice(t *testing.T) {
	r := newRig(t, start, metriclog.Options{})
	r.calls("a", 1, ms)
	r.now = r.now.Add(time.Second)
	r.flush(t)
	again := r.restart(t, start.Add(-2*time.Second))
	for range 4 {
		again.calls("a", 1, ms)
		again.now = again.now.Add(999 * ms)
	}
	again.flush(t)
	if rows := again.checkIndexes(t); rows != 2 || again.metrics()["metriclog_lost_seconds_total"] != 3 {
		t.Errorf("%d rows, %v", rows, again.metrics())
	}
}

// A Writer warns if the log ends in the future.
func TestLogThatEndsInTheFuture(t *testing.T) {
	const year = 365 * 24 * time.Hour
	for ahead, want := range map[time.Duration]int{-time.Hour: 0, time.Minute: 0, time.Hour: 1, year: 1} {
		for _, after := range []bool{false, true} {
			r := newRig(t, start.Add(ahead), metriclog.Options{})
			r.seconds(t, 1)
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			var output strings.Builder
			o := collector.Options{Now: func() time.Time { return start }}
			if after {
				o.After = start.Add(ahead)
			}
			c, err := collector.New(o)
			if err != nil {
				t.Fatal(err)
			}
			w, err := metriclog.New(
				c,
				metriclog.Options{
					Dir:      r.dir,
					App:      "shop",
					Location: time.UTC,
					Logger:   slog.New(slog.NewTextHandler(&output, nil)),
				},
			)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(output.String(), "ends in the future"); n != want {
				t.Errorf("log %v ahead, After %t: %d warnings, want %d: %s", ahead, after, n, want, output.String())
			}
		}
	}
}

// While a directory with the name of the index makes every write fail, seconds wait in the history. Afterwards all of
// them are written. The Writer logs one message when writing fails and one when it works again.
func TestShortFailureLosesNothing(t *testing.T) {
	r := newRig(t, start, metriclog.Options{})
	if err := os.Mkdir(filepath.Join(r.dir, today+".idx"), 0o755); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		r.calls("a", 1, ms)
		r.now = r.now.Add(999 * ms)
		if err := r.Flush(); err == nil {
			t.Fatal("no error")
		}
	}
	if err := os.Remove(filepath.Join(r.dir, today+".idx")); err != nil {
		t.Fatal(err)
	}
	r.flush(t)
	if rows, metrics := r.checkIndexes(t), r.metrics(); rows != 20 || metrics["metriclog_errors_total"] != 20 ||
		metrics["metriclog_lost_seconds_total"] != 0 {
		t.Errorf("%d rows, %v", rows, metrics)
	}
	if n := strings.Count(r.log.String(), "\n"); n != 2 {
		t.Errorf("%d log messages, want 2:\n%s", n, r.log.String())
	}
}

// Seconds that leave the history before they can be written count as lost.
func TestLostSecondsAreCounted(t *testing.T) {
	r := newRig(t, start, metriclog.Options{})
	for range 700 {
		r.calls("a", 1, ms)
		r.now = r.now.Add(999 * ms)
	}
	r.flush(t)
	// The history has ten minutes. The last finished second takes its slot in the history when the next second ends.
	if rows, metrics := r.checkIndexes(t), r.metrics(); rows != 601 || metrics["metriclog_lost_seconds_total"] != 99 {
		t.Errorf("%d rows, %v", rows, metrics)
	}
}

// Run writes every second when it ends. After ctx is done, it writes the open second.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := collector.New(collector.Options{})
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		w, err := metriclog.New(c, metriclog.Options{Dir: dir, App: "shop", Location: time.UTC})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- w.Run(ctx) }()
		time.Sleep(250 * ms)
		sent := 0
		for i := range 35 { // 7 seconds
			for range i + 1 {
				e := c.Resource("a").Enter()
				e.Exit(nil)
				sent++
			}
			time.Sleep(200 * ms)
		}
		read := func() string {
			files, err := w.Files()
			if err != nil || len(files) != 1 {
				t.Fatalf("files %v, %v", files, err)
			}
			b, err := os.ReadFile(files[0])
			if err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		if got := read(); strings.Count(got, "\n") != 14 {
			t.Errorf("after 7 s the log has\n%s", got)
		}
		e := c.Resource("a").Enter()
		e.Exit(nil)
		sent++
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		got := read()
		logged := 0
		for line := range strings.Lines(got) {
			n, _ := strconv.Atoi(strings.Split(line, "|")[3])
			logged += n
		}
		if logged != sent {
			t.Errorf("%d sent, %d logged:\n%s", sent, logged, got)
		}
	})
}

func TestOptionsNameAllInvalidFields(t *testing.T) {
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	os.WriteFile(file, nil, 0o644)
	for _, tc := range []struct {
		o    metriclog.Options
		want []string
	}{
		{metriclog.Options{}, []string{`App: ""`, "Dir: is empty"}},
		{
			metriclog.Options{App: "../x", Dir: t.TempDir(), MaxFiles: -1, MaxFileSize: -1},
			[]string{`App: "../x"`, "MaxFiles: -1", "MaxFileSize: -1"},
		},
		{metriclog.Options{App: "a\nb", Dir: t.TempDir()}, []string{`App: "a\nb"`}},
		{metriclog.Options{App: "\xff", Dir: t.TempDir()}, []string{`App: "\xff"`}},
		{metriclog.Options{App: strings.Repeat("a", 101), Dir: t.TempDir()}, []string{`1 to 100 bytes`}},
		{
			metriclog.Options{MaxFiles: -1, MaxBytes: -2, MaxAge: 1500 * ms, Sync: -time.Second, MaxFileSize: -3},
			[]string{
				`App: ""`, "Dir: is empty", "MaxFiles: -1", "MaxBytes: -2",
				"MaxAge: 1.5s; whole seconds", "Sync: -1s; whole seconds", "MaxFileSize: -3",
			},
		},
		{metriclog.Options{App: "a", Dir: file}, []string{"file: not a directory"}},
		{metriclog.Options{App: "a", Dir: filepath.Join(file, "sub")}, []string{"not a directory"}},
		{metriclog.Options{App: "a", Dir: "/proc/self"}, []string{"/proc/self"}}, // read-only for all users
	} {
		_, err := metriclog.New(c, tc.o)
		for _, part := range tc.want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%+v: error %v does not contain %q", tc.o, err, part)
			}
		}
	}
	if _, err := metriclog.New(nil, metriclog.Options{App: "a", Dir: t.TempDir()}); err == nil {
		t.Error("New without a Collector returned no error")
	}
}

// With ZeroRows, an idle second has rows, and a lost second has none.
func TestZeroRows(t *testing.T) {
	r := newRig(t, start, metriclog.Options{ZeroRows: true, Sync: 2 * time.Second})
	r.Resource("idle")
	for range 5 {
		r.now = r.now.Add(time.Second)
		r.flush(t)
	}
	if rows := r.checkIndexes(t); rows != 5 || r.metrics()["metriclog_rows_total"] != 10 {
		t.Errorf("%d rows, %v", rows, r.metrics())
	}
	if got := r.read(t, today); strings.Count(got, "|idle|0|0|0|0|0|0|0|0\n") != 5 {
		t.Errorf("got\n%s", got)
	}
}

// BenchmarkFlush seals and writes a second of 10,000 active resources.
func BenchmarkFlush(b *testing.B) {
	now := start
	c, err := collector.New(collector.Options{Now: func() time.Time { return now }})
	if err != nil {
		b.Fatal(err)
	}
	w, err := metriclog.New(c, metriclog.Options{Dir: b.TempDir(), App: "shop"})
	if err != nil {
		b.Fatal(err)
	}
	for i := range 10_000 {
		c.Resource(fmt.Sprint("resource number ", i))
	}
	resources := c.Seal().Resources
	second := func() {
		for _, r := range resources {
			e := r.Enter()
			e.Exit(nil)
		}
		now = now.Add(time.Second)
	}
	flush := func() {
		if err := w.Flush(); err != nil {
			b.Fatal(err)
		}
	}
	for range 10 { // until windows and buffers stop growing
		second()
		flush()
	}
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		b.StopTimer()
		second()
		b.StartTimer()
		flush()
	}
	if err := w.Close(); err != nil {
		b.Fatal(err)
	}
}
