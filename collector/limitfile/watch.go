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

// Watcher keeps the limits of a Collector as a file has them. It must be made with [Watch], and publishes metrics about the
// file until [Watcher.Run] has returned. It is safe for concurrent use.
type Watcher struct {
	stats  *collector.Collector
	path   string
	logger *slog.Logger

	reloaded chan struct{} // has one after Reload
	withdraw func()        // takes the metrics away

	mu       sync.Mutex // guards what follows
	read     state      // of the file before it was last read
	loaded   time.Time  // when limits were last taken from the file
	failures int64
}

const (
	pollInterval = time.Second // of the file's state
	warnAfter    = time.Minute // limits that match nothing are reported so long after the file was read
)

// Watch sets the limits from a file, in the place of all there were. If it cannot be read or has a mistake, that is the
// error, and nothing is set. Then [Watcher.Run] follows the file.
func Watch(c *collector.Collector, path string, logger *slog.Logger) (*Watcher, error) {
	if logger == nil {
		logger = slog.Default()
	}
	w := &Watcher{stats: c, path: path, logger: logger, reloaded: make(chan struct{}, 1)}
	w.read = w.state()
	limits, err := Read(path)
	if err == nil {
		err = w.set(limits)
	}
	if err != nil {
		return nil, err
	}
	w.withdraw = c.Publish(w.metrics()...)
	logger.Info("limits were read", "file", path, "limits", len(limits))
	return w, nil
}

// Reload reads the file and sets the limits; on an error they stay as they were. The error is logged, too.
func (w *Watcher) Reload() error {
	w.mu.Lock()
	w.read = w.state()
	w.mu.Unlock()
	select {
	case w.reloaded <- struct{}{}:
	default:
	}
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

// Run reads the file again whenever it has changed, until ctx ends. A change counts when the file has been the same for a
// second, so that a half-written one is left alone; that it is gone counts when it is there again. A minute after each
// reading, limits that match no resource are logged, once: they may be misspelt.
func (w *Watcher) Run(ctx context.Context) error {
	defer w.withdraw()
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	w.mu.Lock()
	before := w.read
	w.mu.Unlock()
	unmatched := time.NewTimer(warnAfter)
	defer unmatched.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-w.reloaded:
			unmatched.Reset(warnAfter)
		case <-ticker.C:
			now := w.state()
			w.mu.Lock()
			read := w.read
			w.mu.Unlock()
			switch {
			case now.info == nil && before.info != nil:
				w.logger.Warn("the file of limits is gone; the limits stay", "file", w.path)
			case now.info != nil && !now.same(read) && now.same(before):
				_ = w.Reload() // it has been logged
			}
			before = now
		case <-unmatched.C:
			w.warn()
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
	resources := w.stats.Resources()
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

// metrics are those that a Watcher publishes about its file.
func (w *Watcher) metrics() []collector.Metric {
	read := func(f func() float64) func() float64 {
		return func() float64 {
			w.mu.Lock()
			defer w.mu.Unlock()
			return f()
		}
	}
	return []collector.Metric{
		{
			Name: "limits_last_reload_timestamp_seconds", Unit: "seconds", Help: "Unix time at which limits were last taken from the file.",
			Value: read(func() float64 { return float64(w.loaded.Unix()) }),
		},
		{
			Name: "limits_reload_failures_total", Help: "Reloads of the file of limits that failed, because it could not be read or had a mistake; the old limits stayed.",
			Value: read(func() float64 { return float64(w.failures) }),
		},
	}
}

// Metrics are those that every [Watcher] publishes about its file, for documents. They have no values.
func Metrics() []collector.Metric { return new(Watcher).metrics() }
