package limitfile

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// Watcher keeps the limits of a Collector as a file has them. It must be made with [Watch]. It is safe for concurrent
// use.
type Watcher struct {
	stats  *collector.Collector
	path   string
	logger *slog.Logger
	first  state // of the file before it was read first

	mu       sync.Mutex
	loaded   time.Time // when limits were last taken from the file
	failures int64
}

// How often the file is checked, and how long after it was read limits that match nothing are reported.
const (
	every     = time.Second
	warnAfter = time.Minute
)

// Watch sets the limits from a file, in the place of all there were. If it cannot be read or has a mistake, that is the
// error, and nothing is set. Then [Watcher.Run] follows the file.
func Watch(c *collector.Collector, path string, logger *slog.Logger) (*Watcher, error) {
	if logger == nil {
		logger = slog.Default()
	}
	w := &Watcher{stats: c, path: path, logger: logger}
	w.first = w.state()
	limits, err := Read(path)
	if err != nil {
		return nil, err
	}
	return w, w.set(limits)
}

// Reload reads the file and sets the limits; on an error they stay as they were. The error is logged, too.
func (w *Watcher) Reload() error {
	limits, err := Read(w.path)
	if err == nil {
		err = w.set(limits)
	}
	if err != nil {
		w.mu.Lock()
		w.failures++
		w.mu.Unlock()
		w.logger.Error("limits were not read again; the old ones stay", "file", w.path, "err", err)
		return err
	}
	w.logger.Info("limits were read again", "file", w.path, "limits", len(limits))
	return nil
}

func (w *Watcher) set(limits []collector.Limit) error {
	if err := w.stats.SetLimits(limits); err != nil {
		return fmt.Errorf("%s: %w", w.path, err)
	}
	w.mu.Lock()
	w.loaded = time.Now()
	w.mu.Unlock()
	return nil
}

// Run reads the file again whenever it has changed, and whenever something comes from again, which may be nil, until
// ctx ends. A change counts when the file has been the same for a second, so that a half-written one is left alone; that
// it is gone counts when it is there again. A minute after each reading, limits that match no resource are logged, once:
// they may be misspelt.
func (w *Watcher) Run(ctx context.Context, again <-chan os.Signal) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	loaded, before := w.first, w.first
	unmatched := time.NewTimer(warnAfter)
	defer unmatched.Stop()
	for {
		reload := false
		select {
		case <-ctx.Done():
			return nil
		case _, open := <-again:
			if reload = open; !open {
				again = nil
			}
		case <-ticker.C:
			now := w.state()
			switch {
			case now.info == nil && before.info != nil:
				w.logger.Warn("the file of limits is gone; the limits stay", "file", w.path)
			case now.info != nil:
				reload = !now.same(loaded) && now.same(before)
			}
			before = now
		case <-unmatched.C:
			w.warn()
		}
		if reload {
			loaded = w.state()
			_ = w.Reload() // it has been logged
			unmatched.Reset(warnAfter)
		}
	}
}

// state is what a file looks like from outside. The zero value is one that is not there.
type state struct{ info os.FileInfo }

func (w *Watcher) state() state {
	info, err := os.Stat(w.path)
	if err != nil {
		return state{}
	}
	return state{info}
}

// same reports whether it is the same file, as far as can be seen without reading it.
func (s state) same(o state) bool {
	return s.info != nil && o.info != nil && os.SameFile(s.info, o.info) &&
		s.info.Size() == o.info.Size() && s.info.ModTime().Equal(o.info.ModTime())
}

// warn logs the limits that match nothing.
func (w *Watcher) warn() {
	var names []string
	resources := w.stats.Seal().Resources
limits:
	for _, l := range w.stats.Limits() {
		for _, r := range resources {
			if l.Matches(r.Name()) {
				continue limits
			}
		}
		names = append(names, l.String())
	}
	if len(names) > 0 {
		w.logger.Warn("limits match no resource so far", "file", w.path, "limits", names)
	}
}

// Self tells package exporter's metrics about the file.
func (w *Watcher) Self(yield func(name string, value float64, labels ...string)) {
	w.mu.Lock()
	loaded, failures := w.loaded, w.failures
	w.mu.Unlock()
	yield("limits_last_reload_timestamp_seconds", float64(loaded.Unix()))
	yield("limits_reload_failures_total", float64(failures))
}
