package metriclog_test

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

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

// A delayed Writer may write the seconds of one day before it fails to create the segment of the next day. The next
// Flush continues after the written seconds and does not count them as lost.
func TestFailureBetweenTwoDays(t *testing.T) {
	midnight := time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC)
	r := newRig(t, midnight.Add(-5*time.Second), metriclog.Options{})
	for range 10 {
		r.calls("a", 1, ms)
		r.now = r.now.Truncate(time.Second).Add(time.Second)
	}
	obstacle := filepath.Join(r.dir, "shop-metrics.log.2026-01-03")
	if err := os.Mkdir(obstacle, 0o755); err != nil {
		t.Fatal(err)
	}
	if r.Flush() == nil {
		t.Fatal("no error for a segment that cannot be created")
	}
	if got := r.metrics()["metriclog_seconds_total"]; got != 5 {
		t.Errorf("%v seconds before the error, want 5", got)
	}
	if err := os.Remove(obstacle); err != nil {
		t.Fatal(err)
	}
	r.flush(t)
	if rows, metrics := r.checkIndexes(t), r.metrics(); rows != 10 || metrics["metriclog_rows_total"] != 20 ||
		metrics["metriclog_seconds_total"] != 10 || metrics["metriclog_lost_seconds_total"] != 0 {
		t.Errorf("%d rows, %v", rows, metrics)
	}
}
