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

// Watcher keeps the limits of a Collector in sync with a file. Create it with [Watch]. It publishes metrics about the
// file until [Watcher.Run] returns. It is safe for concurrent use.
type Watcher struct {
	stats  *collector.Collector
	path   string
	logger *slog.Logger

	unpublish func() // removes the metrics

	read     atomic.Pointer[os.FileInfo] // state of the file immediately before the last load
	loaded   atomic.Int64                // Unix time of the last successful load
	failures atomic.Int64
	failing  atomic.Bool // the last load failed
}

const (
	pollInterval = time.Second // time between two checks of the file
	warnAfter    = time.Minute // time from a load to the warning about limits that match no resource
)

// Watch replaces all limits of a Collector by the limits in a file. If the file cannot be read or has an error, Watch
// returns the error and changes no limit. Call [Watcher.Run] to follow changes of the file.
func Watch(c *collector.Collector, path string, logger *slog.Logger) (*Watcher, error) {
	w := &Watcher{stats: c, path: path, logger: cmp.Or(logger, slog.Default())}
	n, err := w.load()
	if err != nil {
		return nil, err
	}
	w.unpublish = c.Publish(w.metrics()...)
	w.logger.Info("loaded limits", "file", path, "limits", n)
	return w, nil
}

// Reload reads the file and sets the limits. If that fails, Reload changes no limit, and logs and returns the error.
func (w *Watcher) Reload() error {
	n, err := w.load()
	if err != nil {
		w.failures.Add(1)
		w.failing.Store(true)
		w.logger.Error("cannot reload limits; keeping the previous ones", "file", w.path, "err", err)
		return err
	}
	w.logger.Info("reloaded limits", "file", w.path, "limits", n)
	return nil
}

// load sets the limits from the file, and returns the number of limits.
func (w *Watcher) load() (int, error) {
	// Get the state of the file before the file is read. If the file changes while it is read, Run later finds another
	// state and reloads the file.
	state := w.state()
	w.read.Store(&state)
	limits, err := Read(w.path)
	if err != nil {
		return 0, err
	}
	if err := w.stats.SetLimits(limits); err != nil {
		return 0, fmt.Errorf("%s: %w", w.path, err)
	}
	w.loaded.Store(time.Now().Unix())
	w.failing.Store(false)
	return len(limits), nil
}

// Run reloads the file whenever it changes, until ctx ends. It reloads a changed file only when the file has stayed the
// same for a second, to skip files that are only partly written. If the file is removed, the limits stay in force, and
// Run reloads the file when it exists again. A minute after each load, Run logs one message with the limits that match
// no resource, because their names may be misspelled. In this example, the content of the file changes from A to B:
//
//	time          file               state of the file; action of Run
//	0 s           A                  same as a second ago, and same as at the last load: do nothing
//	1 s           B is written       changed since a second ago: wait
//	2 s           B                  same as a second ago, but changed since the last load: reload
func (w *Watcher) Run(ctx context.Context) error {
	defer w.unpublish()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	previous := *w.read.Load() // state of the file at the last tick
	warned := int64(0)         // time of the last load for which warn was called
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		// Log a removal only once, at the first tick at which the file is missing.
		now := w.state()
		switch {
		case now == nil && previous != nil:
			w.logger.Warn("limits file was removed; keeping the limits", "file", w.path)
		case now != nil && !same(now, *w.read.Load()) && same(now, previous):
			_ = w.Reload() // Reload logs its error
		}
		previous = now
		if loaded := w.loaded.Load(); loaded != warned && time.Since(time.Unix(loaded, 0)) >= warnAfter {
			w.warn()
			warned = loaded
		}
	}
}

// state returns the os.FileInfo of the file, or nil if os.Stat fails, for example because the file does not exist.
func (w *Watcher) state() os.FileInfo {
	info, _ := os.Stat(w.path)
	return info
}

// same reports whether a and b describe the same version of a file: the same file, size and time of modification. It
// does not read the file. If an editor replaces a file by a new one, os.SameFile detects the new file even if the size
// and the time are equal.
func same(a, b os.FileInfo) bool {
	return a != nil && b != nil && os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// warn logs the limits in force that match no resource.
func (w *Watcher) warn() {
	// A limit that matches no resource is not an error, because a matching resource may be created later.
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

// metrics returns the self-metrics of the Watcher.
func (w *Watcher) metrics() []collector.Metric {
	return []collector.Metric{
		{
			Name: "limits_last_reload_successful",
			Help: "1 if the last load of the limits file succeeded, 0 if it failed.",
			Value: func() float64 {
				if w.failing.Load() {
					return 0
				}
				return 1
			},
		},
		{
			Name: "limits_last_reload_success_timestamp_seconds", Unit: "seconds",
			Help:  "Unix time of the last successful load of the limits file.",
			Value: func() float64 { return float64(w.loaded.Load()) },
		},
		{
			Name:  "limits_reload_failures_total",
			Help:  "Failed reloads of the limits file. The previous limits stay in force.",
			Value: func() float64 { return float64(w.failures.Load()) },
		},
	}
}
