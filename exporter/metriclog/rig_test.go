package metriclog_test

import (
	"encoding/binary"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

const ms = time.Millisecond

var start = time.Date(2026, 1, 2, 3, 4, 5, 100e6, time.UTC)

const today = "shop-metrics.log.2026-01-02"

// rig is a service with a log, and a clock that the test sets.
type rig struct {
	*collector.Collector
	*metriclog.Writer
	now time.Time
	dir string
	log strings.Builder
}

// newRig starts a service at the given time, with defaults for the options that a test does not set.
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

// calls makes n calls of a resource, one after the other. Each takes rt on the clock of the test.
func (r *rig) calls(resource string, n int, rt time.Duration) {
	for range n {
		e := r.Resource(resource).Enter()
		r.now = r.now.Add(rt)
		e.Exit(nil)
	}
}

// flush calls Flush and fails the test on an error.
func (r *rig) flush(t *testing.T) {
	t.Helper()
	if err := r.Flush(); err != nil {
		t.Fatal(err)
	}
}

// seconds writes n seconds, each with the row of a resource and the row of inbound traffic.
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

// read returns the contents of a file in the directory of the log.
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

// checkIndexes checks that seconds ascend and that each index record points at the first line of its second. It returns
// the number of rows of resources.
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
