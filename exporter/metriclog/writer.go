package metriclog

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/background"
	"github.com/windowstat/windowstat/exporter/internal/runs"
	"github.com/windowstat/windowstat/node"
)

// Writer writes the sealed seconds of a Collector to a log. It must be made with [New], and is safe for concurrent use.
//
// It has one position, the first second to write, and [Writer.Flush] moves it on: it reads the records of all resources of some
// seconds, makes their rows, and writes them, each second whole or not at all. A second is passed over, and counted as lost, if the
// history lacks the record of a resource, or the log has a later second already. An error leaves the position where it is, so the
// next Flush, a second later with [Writer.Run], begins with the same second; what was written of it is cut off.
//
// A second, or as many as it is behind, costs eight system calls: two write rows and index, and six notice that files were
// deleted, truncated or locked by another process meanwhile. Rows of up to 64 seconds, or about 32,768, are in memory at a time, and
// those of one second afterwards.
type Writer struct {
	stats     *collector.Collector
	unpublish func() // removes the metrics

	mu         sync.Mutex // guards what follows, but for the options of the files
	files      *files
	next       int64             // index of the first second to write
	seconds    []second          // memory for those that are written next
	records    []node.MetricNode // of one resource
	name       []byte            // its name, as in a line
	failing    bool
	stateFiles []string // names that StateFile returned
	runs       *runs.File

	stat stats
}

// New makes a Writer for all seconds from the present one on, and its directory. It locks the log, removes what a crash left
// incomplete, and appends to the newest file if that is of today and not full. The Collector should begin after the last second
// of the log, see [Last].
//
// The error names every invalid option, and a directory that is not writable. It is also an error that another Writer, in this
// process or another, has the log, where the system can tell; [Writer.Close] and the end of the process release it.
func New(c *collector.Collector, o Options) (*Writer, error) {
	if c == nil {
		return nil, errors.Join(errors.New("metriclog: no Collector"), o.Check())
	}
	files, err := o.open()
	if err != nil {
		return nil, err
	}
	w := &Writer{stats: c, files: files, next: c.Seal().Open}
	w.stat.last.Store(files.last)
	w.warnFuture()
	if err := w.openRuns(); err != nil {
		return nil, errors.Join(fmt.Errorf("metriclog: %w", err), w.Close())
	}
	w.unpublish = c.Publish(w.metrics()...)
	return w, nil
}

// warnFuture warns if the log ends in the future, as after a start with a wrong clock: nothing is written until then, because
// no second may have two values.
func (w *Writer) warnFuture() {
	const tolerated = 300 // seconds
	last := w.stat.last.Load()
	name, ok := w.stats.Timeline().WallTime(w.next)
	if last > 0 && (!ok || last-name.Unix() > tolerated) {
		w.files.Logger.Warn("metric log ends in the future; nothing is written until then. If the clock was wrong, move the files away and restart",
			"dir", w.files.Dir, "end", time.Unix(last, 0).In(w.files.Location))
	}
}

// Run writes each second when it is sealed, until ctx ends. Then it waits for the open second, at most about a second, writes
// it, and closes the files. It returns the error of that last write.
func (w *Writer) Run(ctx context.Context) error {
	err := background.EverySecond(ctx, w.stats.Timeline(), w.Flush)
	return errors.Join(err, w.Close())
}

// Flush writes all sealed seconds that were not written yet. If one cannot be written, it and later ones are left for the next
// Flush.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.forget()
	m := w.stats.Seal()
	_ = w.runs.Save() // a failed attempt was logged, and the next Flush retries it
	for w.next < m.Open {
		seconds := w.read(m)
		n, err := w.write(seconds)
		w.stat.last.Store(w.files.last)
		for _, s := range seconds[:n] {
			w.count(s)
		}
		w.next += int64(n)
		if err != nil {
			w.stat.errors.Add(1)
			if !w.failing {
				w.files.Logger.Error("cannot write the metric log; retrying every second", "dir", w.files.Dir, "err", err)
			}
			w.failing = true
			return fmt.Errorf("metriclog: %w", err)
		}
		if w.failing {
			w.files.Logger.Info("writing the metric log works again", "dir", w.files.Dir, "lost_seconds", w.stat.lost.Load())
			w.failing = false
		}
	}
	return nil
}

// write writes seconds, and returns how many are dealt with: all, or, if there is an error, those before the first that is not in the
// log. A second that is not after the log's last one is lost.
func (w *Writer) write(seconds []second) (n int, err error) {
	for i := range seconds {
		s := &seconds[i]
		if s.rows == 0 {
			continue
		}
		if err = w.files.append(s.start, s.lines); errors.Is(err, errLate) {
			s.lose()
			err = nil
		}
		if err != nil {
			break
		}
	}
	if err == nil {
		err = w.files.flush()
	}
	if err == nil {
		return len(seconds), nil
	}
	for n < len(seconds) && (seconds[n].rows == 0 || seconds[n].start.Unix() <= w.files.last) {
		n++
	}
	return n, err
}

// count counts a second that the Writer has dealt with.
func (w *Writer) count(s second) {
	if !s.named {
		return
	}
	w.stat.seconds.Add(1)
	w.stat.rows.Add(s.rows)
	if s.lost {
		w.stat.lost.Add(1)
	}
}

// Close closes the files, releases the log and removes the Writer's metrics. A later Flush locks the log and opens the files
// again, unless another process has it; seconds that the other process logged are not written again.
func (w *Writer) Close() error {
	if w.unpublish != nil {
		w.unpublish()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.files.close()
}

// Files returns the paths of the log's files, oldest first, without the indexes.
func (w *Writer) Files() ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all, err := w.files.list()
	var paths []string
	for _, x := range all {
		paths = append(paths, w.files.path(x))
	}
	return paths, err
}

// Start runs Run in a new goroutine. The returned stop cancels its context, waits for it, and returns its error; it may be
// called several times.
func (w *Writer) Start() (stop func() error) { return background.Start(w.Run) }

// stats count the work of a Writer. They are atomic, not guarded by its mutex: a hanging disk must not block a scrape.
type stats struct{ seconds, rows, errors, lost, last atomic.Int64 }

// metrics are those that a Writer publishes about itself.
func (w *Writer) metrics() (all []collector.Metric) {
	metric := func(name, unit, help string, n *atomic.Int64) {
		all = append(all, collector.Metric{Name: name, Unit: unit, Help: help, Value: func() float64 { return float64(n.Load()) }})
	}
	metric("metriclog_seconds_total", "seconds", "Sealed seconds that the metric log has dealt with, idle ones included.", &w.stat.seconds)
	metric("metriclog_rows_total", "", "Rows written to the metric log.", &w.stat.rows)
	metric("metriclog_errors_total", "", "Failed attempts to write the metric log, which are repeated, or to read it.", &w.stat.errors)
	metric("metriclog_lost_seconds_total", "seconds",
		"Seconds of which the metric log lacks rows, because it could not be written for too long or already held a later second.", &w.stat.lost)
	metric("metriclog_last_second_timestamp_seconds", "seconds", "Unix time of the last second in the metric log; 0 while there is none.", &w.stat.last)
	return all
}
