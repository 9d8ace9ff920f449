package metriclog_test

import (
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/node"
)

// archiveTest is an Archive and the rows that were appended to it.
type archiveTest struct {
	*metriclog.Archive
	t    *testing.T
	want []string
}

// newArchiveTest opens an archive that has no rows yet.
func newArchiveTest(t *testing.T, o metriclog.Options) *archiveTest {
	t.Helper()
	a, err := metriclog.NewArchive(o)
	if err != nil {
		t.Fatal(err)
	}
	return &archiveTest{Archive: a, t: t}
}

// secondRows returns the rows of a second with n passes of one resource.
func secondRows(at time.Time, n int64) iter.Seq2[string, *node.MetricNode] {
	m := node.MetricNode{
		Start:       at,
		Counts:      node.Counts{Pass: n, Complete: n, Block: 1, Exception: 2, RTSum: time.Duration(n) * 3 * ms},
		InFlightMax: 4,
	}
	return func(yield func(string, *node.MetricNode) bool) {
		_ = yield("GET /a|b", &m) && yield(collector.InboundTotal, &m)
	}
}

// add appends a second with n passes, and records the expected rows in a.want.
func (a *archiveTest) add(at time.Time, n int64) {
	a.t.Helper()
	if err := a.Append(at, secondRows(at, n)); err != nil {
		a.t.Fatal(err)
	}
	for _, name := range []string{"GET /a|b", collector.InboundTotal} {
		a.want = append(a.want, fmt.Sprint(at.Unix(), name, n, 1, n, 2, 3*ms, 4))
	}
}

// check closes the archive and compares all rows of the log with the appended ones.
func (a *archiveTest) check(dir string) {
	a.t.Helper()
	if err := a.Close(); err != nil {
		a.t.Fatal(err)
	}
	if got := searchAll(a.t, dir); !slices.Equal(got, a.want) {
		a.t.Errorf("%d rows, want %d: %.300q, want %.300q", len(got), len(a.want), got, a.want)
	}
}

// searchAll returns all rows of the logs in a directory as text. Errors and malformed lines fail the test.
func searchAll(t *testing.T, dir string) (all []string) {
	t.Helper()
	rows, err := metriclog.Searcher{Dir: dir}.Search(metriclog.Query{})
	if err != nil {
		t.Fatal(err)
	}
	for r := range rows.All() {
		all = append(all,
			fmt.Sprint(r.Start.Unix(), r.Resource, r.Pass, r.Block, r.Success, r.Exception, r.RT, r.Concurrency))
	}
	if err := rows.Close(); err != nil || rows.Err() != nil || rows.Malformed() != 0 {
		t.Fatalf("%v, %v, %d malformed", err, rows.Err(), rows.Malformed())
	}
	return all
}

// filesWithoutLock returns the names of all files in a directory except the lock file.
func filesWithoutLock(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".lck") {
			names = append(names, e.Name())
		}
	}
	return names
}

// An archive starts a segment at each local midnight and at each size limit. It keeps more segments than MaxFiles, and
// seconds older than MaxAge.
func TestArchive(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	o := metriclog.Options{
		Dir:         filepath.Join(t.TempDir(), "new"),
		App:         "web",
		Location:    zone,
		MaxFileSize: 300 << 10,
		MaxFiles:    2,
		MaxAge:      time.Second,
	}
	at := time.Date(2015, 3, 28, 22, 0, 0, 0, time.UTC) // an hour before the day of 23 hours
	a := newArchiveTest(t, o)
	for i := range int64(12) {
		a.add(at, 1+i)
		at = at.Add(5 * time.Hour)
	}
	for i := range int64(10_000) {
		a.add(at, 1+i)
		at = at.Add(time.Second)
	}
	a.check(o.Dir)
	got := strings.Join(filesWithoutLock(t, o.Dir), " ")
	for _, want := range []string{
		"web-metrics.log.2015-03-28 web-metrics.log.2015-03-28.idx " +
			"web-metrics.log.2015-03-29 web-metrics.log.2015-03-29.idx web-metrics.log.2015-03-30 ",
		"web-metrics.log.2015-03-31 web-metrics.log.2015-03-31.1 " +
			"web-metrics.log.2015-03-31.1.idx web-metrics.log.2015-03-31.2",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("files: %s, want %s", got, want)
		}
	}
	data, err := os.ReadFile(filepath.Join(o.Dir, "web-metrics.log.2015-03-29"))
	if err != nil {
		t.Fatal(err)
	}
	const want = `1427598000000|2015-03-29 05:00:00|GET /a\x7cb|2|1|2|2|3|0|4|0`
	if first, _, _ := strings.Cut(string(data), "\n"); first != want {
		t.Errorf("first line: %s, want %s", first, want)
	}
}

// A second archive appends to the log of the first one. It refuses seconds that are not later.
func TestArchiveContinues(t *testing.T) {
	o := metriclog.Options{Dir: t.TempDir(), App: "web", Location: time.UTC}
	at := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	first := newArchiveTest(t, o)
	if other, err := metriclog.NewArchive(o); err == nil {
		t.Errorf("two archives opened the same log: %v", other.Close())
	}
	first.add(at, 1)
	first.add(at.Add(time.Second), 2)
	first.check(o.Dir)

	again := newArchiveTest(t, o)
	again.want = first.want
	for _, x := range []time.Time{at.Add(-time.Hour), at, at.Add(time.Second)} {
		err := again.Append(x, secondRows(x, 5))
		if err == nil ||
			!strings.Contains(err.Error(),
				"has seconds up to 2020-01-01 00:00:01 already; cannot append "+x.Format(time.DateTime)) {
			t.Errorf("%v: %v", x, err)
		}
	}
	again.add(at.Add(2*time.Second), 3)
	again.check(o.Dir)
	if names := filesWithoutLock(t, o.Dir); len(names) != 2 {
		t.Errorf("files: %v", names)
	}
}

// A crash during a write leaves complete seconds. The next archive removes the rest and continues after them.
func TestArchiveAfterCrash(t *testing.T) {
	o := metriclog.Options{Dir: t.TempDir(), App: "web", Location: time.UTC}
	at := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	a := newArchiveTest(t, o)
	for i := range int64(20) {
		a.add(at.Add(time.Duration(i)*time.Second), 1)
	}
	a.check(o.Dir)
	path := filepath.Join(o.Dir, "web-metrics.log.2020-01-01")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for cut := len(whole) - 1; cut > 0; cut -= 37 {
		if err := os.WriteFile(path, whole[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path+".idx", 0); err != nil {
			t.Fatal(err)
		}
		seconds := strings.Count(string(whole[:cut]), collector.InboundTotal+"|1|1|1|2|3|0|4|0\n")
		again := newArchiveTest(t, o)
		again.want = a.want[: 2*seconds : 2*seconds]
		again.add(at.Add(time.Duration(seconds)*time.Second), 9)
		again.check(o.Dir)
	}
}

// After a failed write, an archive loses its buffered seconds and returns the error once. The seconds in the files
// remain.
func TestArchiveWriteError(t *testing.T) {
	o := metriclog.Options{Dir: t.TempDir(), App: "web", Location: time.UTC}
	at := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	a := newArchiveTest(t, o)
	a.add(at, 1)
	if err := os.Mkdir(filepath.Join(o.Dir, "web-metrics.log.2020-01-02"), 0o755); err != nil {
		t.Fatal(err)
	}
	at = at.AddDate(0, 0, 1)
	err := a.Append(at, secondRows(at, 2))
	if err == nil || !strings.Contains(err.Error(), "2020-01-02") {
		t.Errorf("error: %v", err)
	}
	if err := a.Append(at.AddDate(0, 0, 1), secondRows(at, 3)); err == nil {
		t.Error("Append after an error succeeded")
	}
	if err := a.Close(); err != nil {
		t.Errorf("Close returned the error again: %v", err)
	}
	if got := searchAll(t, o.Dir); strings.Join(got, "\n") != strings.Join(a.want, "\n") {
		t.Errorf("got %v, want %v", got, a.want)
	}
}

// The error of NewArchive names every invalid option.
func TestArchiveOptions(t *testing.T) {
	_, err := metriclog.NewArchive(metriclog.Options{App: "a/b", MaxFileSize: -1})
	for _, want := range []string{"App", "MaxFileSize", "Dir: is empty"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %s in %v", want, err)
		}
	}
}

// A changed time zone can return to a date that already has segments. The next segment then gets the next free number,
// and all seconds stay in order.
func TestArchiveTimeZoneChange(t *testing.T) {
	o := metriclog.Options{Dir: t.TempDir(), App: "web"}
	at := time.Date(2020, 1, 1, 20, 0, 0, 0, time.UTC)
	var want []string
	for _, zone := range []*time.Location{time.UTC, time.FixedZone("east", 14*3600), time.UTC, time.UTC} {
		o.Location = zone
		a := newArchiveTest(t, o)
		a.want = want
		a.add(at, 1)
		a.check(o.Dir)
		want, at = a.want, at.Add(time.Minute)
	}
	got := strings.Join(
		slices.DeleteFunc(filesWithoutLock(t, o.Dir),
			func(name string) bool { return strings.HasSuffix(name, ".idx") }),
		" ",
	)
	if got != "web-metrics.log.2020-01-01 web-metrics.log.2020-01-01.1 web-metrics.log.2020-01-02" {
		t.Errorf("files: %s", got)
	}
}
