package limitfile

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// Watcher keeps the limits of a Collector as a file has them. It must be made with [Watch], and publishes metrics about the
// file until [Watcher.Run] has returned. It is safe for concurrent use.
type Watcher struct {
	stats  *collector.Collector
	path   string
	logger *slog.Logger

	withdraw func() // takes the metrics away

	read     atomic.Pointer[os.FileInfo] // of the file before it was last read
	loaded   atomic.Int64                // Unix time at which limits were last taken from the file
	failures atomic.Int64
}

const (
	pollInterval = time.Second // of the file's state
	warnAfter    = time.Minute // limits that match nothing are reported so long after the file was read
)

// Watch sets the limits from a file, in the place of all there were. If it cannot be read or has a mistake, that is the
// error, and nothing is set. Then [Watcher.Run] follows the file.
func Watch(c *collector.Collector, path string, logger *slog.Logger) (*Watcher, error) {
	w := &Watcher{stats: c, path: path, logger: cmp.Or(logger, slog.Default())}
	n, err := w.load()
	if err != nil {
		return nil, err
	}
	w.withdraw = c.Publish(w.metrics()...)
	w.logger.Info("limits were read", "file", path, "limits", n)
	return w, nil
}

// Reload reads the file and sets the limits; on an error they stay as they were. The error is logged, too.
func (w *Watcher) Reload() error {
	n, err := w.load()
	if err != nil {
		w.failures.Add(1)
		w.logger.Error("limits were not read again; the old ones stay", "file", w.path, "err", err)
		return err
	}
	w.logger.Info("limits were read again", "file", w.path, "limits", n)
	return nil
}

// load sets the limits from the file, and returns how many there are.
func (w *Watcher) load() (int, error) {
	before := w.state()
	w.read.Store(&before)
	limits, err := Read(w.path)
	if err != nil {
		return 0, err
	}
	if err := w.stats.SetLimits(limits); err != nil {
		return 0, fmt.Errorf("%s: %w", w.path, err)
	}
	w.loaded.Store(time.Now().Unix())
	return len(limits), nil
}

// Run reads the file again whenever it has changed, until ctx ends. A change counts when the file has been the same for a
// second, so that a half-written one is left alone; that it is gone counts when it is there again. A minute after each
// reading, limits that match no resource are logged, once: they may be misspelt.
func (w *Watcher) Run(ctx context.Context) error {
	defer w.withdraw()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	before := *w.read.Load()
	warned := int64(0) // of the limits that were loaded then
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		now := w.state()
		switch {
		case now == nil && before != nil:
			w.logger.Warn("the file of limits is gone; the limits stay", "file", w.path)
		case now != nil && !same(now, *w.read.Load()) && same(now, before):
			_ = w.Reload() // it has been logged
		}
		before = now
		if loaded := w.loaded.Load(); loaded != warned && time.Since(time.Unix(loaded, 0)) >= warnAfter {
			w.warn()
			warned = loaded
		}
	}
}

// state is what the file looks like from outside, nil if it is not there.
func (w *Watcher) state() os.FileInfo {
	info, _ := os.Stat(w.path)
	return info
}

// same reports whether two are the same file, as far as can be seen without reading it.
func same(a, b os.FileInfo) bool {
	return a != nil && b != nil && os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// warn logs the limits that match nothing.
func (w *Watcher) warn() {
	var names []string
	resources := w.stats.Resources()
	for _, l := range w.stats.Limits() {
		if !slices.ContainsFunc(resources, func(r *collector.Resource) bool { return l.Matches(r.Name()) }) {
			names = append(names, l.String())
		}
	}
	if len(names) > 0 {
		w.logger.Warn("limits match no resource so far", "file", w.path, "limits", names)
	}
}

// metrics are those that a Watcher publishes about its file.
func (w *Watcher) metrics() []collector.Metric {
	return []collector.Metric{
		{
			Name: "limits_last_reload_timestamp_seconds", Unit: "seconds", Help: "Unix time at which limits were last taken from the file.",
			Value: func() float64 { return float64(w.loaded.Load()) },
		},
		{
			Name: "limits_reload_failures_total", Help: "Reloads of the file of limits that failed, because it could not be read or had a mistake; the old limits stayed.",
			Value: func() float64 { return float64(w.failures.Load()) },
		},
	}
}
