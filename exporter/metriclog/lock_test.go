//go:build unix

package metriclog_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// After Close, or after its lock file was deleted, a Writer reads the seconds of other processes before it writes
// again.
func TestLogOfAnotherProcess(t *testing.T) {
	r := newRig(t, start, metriclog.Options{})
	r.seconds(t, 2)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	other := newRig(t, r.now, metriclog.Options{Dir: r.dir})
	other.seconds(t, 3)
	for range 5 { // three seconds that the other process has logged, and two more
		r.calls("a", 1, ms)
		r.now = r.now.Truncate(time.Second).Add(time.Second)
	}
	if r.Flush() == nil {
		t.Error("Flush wrote a log that another Writer has locked")
	}
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	r.flush(t)
	if got := r.checkIndexes(t); got != 7 { // it also checks that seconds ascend
		t.Errorf("%d rows in the log, want 7", got)
	}
	if got := r.metrics()["metriclog_lost_seconds_total"]; got != 3 {
		t.Errorf("%v seconds lost, want 3", got)
	}
	if err := os.Remove(filepath.Join(r.dir, "shop-metrics.log.lck")); err != nil {
		t.Fatal(err)
	}
	r.seconds(t, 1) // no other process has taken the log
	if got := r.checkIndexes(t); got != 8 {
		t.Errorf("%d rows in the log, want 8", got)
	}
}

// If reopening the log fails, the next Flush retries.
func TestReopenError(t *testing.T) {
	r := newRig(t, start, metriclog.Options{})
	r.seconds(t, 2)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	other := newRig(t, r.now, metriclog.Options{Dir: r.dir})
	other.seconds(t, 3)
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	index, away := filepath.Join(r.dir, today+".idx"), filepath.Join(r.dir, "away")
	if err := errors.Join(os.Rename(index, away), os.Mkdir(index, 0o700)); err != nil {
		t.Fatal(err)
	}
	r.calls("a", 1, ms) // in a second that the other process has logged
	r.now = r.now.Add(time.Second)
	if r.Flush() == nil {
		t.Error("no error for an index that is a directory")
	}
	if err := errors.Join(os.Remove(index), os.Rename(away, index)); err != nil {
		t.Fatal(err)
	}
	r.flush(t)
	if rows, lost := r.checkIndexes(t), r.metrics()["metriclog_lost_seconds_total"]; rows != 5 || lost != 1 {
		t.Errorf("%d rows, and %v seconds lost; want 5 and 1", rows, lost)
	}
}

// scrapingHandler is a log handler that reads the Writer's metrics while the Writer waits for the handler, as it would
// wait for a slow disk.
type scrapingHandler struct {
	slog.Handler
	metrics func() map[string]float64
	got     float64
}

// Handle reads the metric of errors in another goroutine. It gives up after ten seconds if the Writer blocks this
// goroutine.
func (a *scrapingHandler) Handle(context.Context, slog.Record) error {
	metric := make(chan float64, 1)
	go func() { metric <- a.metrics()["metriclog_errors_total"] }()
	select {
	case a.got = <-metric:
		return nil
	case <-time.After(10 * time.Second):
		return nil
	}
}

// A slow disk must not block /metrics.
func TestMetricsDoNotWaitForDisk(t *testing.T) {
	r := newRig(t, start, metriclog.Options{})
	a := &scrapingHandler{Handler: slog.NewTextHandler(&r.log, nil)}
	w, err := metriclog.New(r.Collector, metriclog.Options{Dir: t.TempDir(), App: "shop", Logger: slog.New(a)})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close() //nolint:errcheck // not the subject of the test
	a.metrics = func() map[string]float64 { return (&rig{Writer: w}).metrics() }
	state, err := w.StateFile("x")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(state), "*.lck"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	if err := errors.Join(os.Remove(files[0]), os.Mkdir(files[0], 0o700)); err != nil {
		t.Fatal(err)
	}
	r.calls("a", 1, ms)
	r.now = r.now.Add(time.Second)
	if err := w.Flush(); err == nil || a.got != 1 {
		t.Errorf("error %v; %v errors counted during logging, want 1", err, a.got)
	}
}
