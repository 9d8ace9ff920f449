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

// Writer writes the sealed seconds of a Collector to a log. Create it with [New]. It is safe for concurrent use.
//
// A Writer has one position: the first second to write. [Writer.Flush] reads the records of all resources for some
// seconds, builds their rows, writes them, and moves the position:
//
//	result                                            position   counted as
//	------                                            --------   ----------
//	written, or a second without rows                 moves on   metriclog_seconds_total
//	a record is missing, or the log has a later one   moves on   metriclog_seconds_total, metriclog_lost_seconds_total
//	error                                             stays      metriclog_errors_total
//
// After an error, the files are truncated to their previous sizes. The next Flush, a second later with [Writer.Run],
// starts with the same second.
//
// One or more seconds that are written together cost eight system calls: two write the rows and the index; six detect
// whether another program deleted, truncated or locked the files. The rows of up to 64 seconds, or of about 32,768
// rows, are in memory during a Flush. Afterwards the Writer keeps the memory for one second.
type Writer struct {
	stats     *collector.Collector
	unpublish func() // removes the metrics

	mu         sync.Mutex // guards the fields below, except the options in files
	files      *files
	next       int64             // index of the first second to write
	seconds    []pendingSecond   // result of readSeconds, reused by each Flush
	records    []node.MetricNode // records of one resource, reused
	name       []byte            // escaped name of this resource, reused
	failing    bool              // the last write failed, and the error is logged
	stateFiles []string          // names that StateFile has returned
	runs       *runs.File

	stat stats
}

// New returns a Writer for all seconds from the current one on. It creates the directory, locks the log, and removes
// incomplete seconds that a crash left. It appends to the newest file if that is from today and not full. The Collector
// should start after the last second of the log, see [Last].
//
// The error names every invalid option, and a directory that is not writable. New also fails if another Writer, in this
// process or another one, has the log locked, on systems with file locks. [Writer.Close] and the end of the process
// release the lock.
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

// warnFuture logs a warning if the log ends in the future, for example after a start with a wrong clock. Nothing is
// written before that time, because no second may have two values.
func (w *Writer) warnFuture() {
	const tolerated = 300 // seconds
	last := w.stat.last.Load()
	name, ok := w.stats.Timeline().WallTime(w.next)
	if last > 0 && (!ok || last-name.Unix() > tolerated) {
		const message = "metric log ends in the future; nothing is written before its end. " +
			"If the clock was wrong, move the files to another directory and restart"
		w.files.Logger.Warn(message, "dir", w.files.Dir, "end", time.Unix(last, 0).In(w.files.Location))
	}
}

// Run writes each second when it is sealed, until ctx is done. Then it waits for the open second, about a second at
// most, writes it, and closes the files. It returns the errors of the last write and of closing.
func (w *Writer) Run(ctx context.Context) error {
	err := background.EverySecond(ctx, w.stats.Timeline(), w.Flush)
	return errors.Join(err, w.Close())
}

// Flush writes all sealed seconds that have not been written. If it cannot write a second, the next Flush starts with
// it.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.releaseMemory()
	m := w.stats.Seal()
	_ = w.runs.Save() // openRuns has logged a failure; each Flush retries
	for w.next < m.Open {
		seconds := w.readSeconds(m)
		n, err := w.writeSeconds(seconds)
		w.stat.last.Store(w.files.last)
		for _, s := range seconds[:n] {
			w.countSecond(s)
		}
		w.next += int64(n)
		if err != nil {
			w.stat.errors.Add(1)
			if !w.failing {
				const message = "cannot write the metric log; retrying every second"
				w.files.Logger.Error(message, "dir", w.files.Dir, "err", err)
			}
			w.failing = true
			return fmt.Errorf("metriclog: %w", err)
		}
		if w.failing {
			const message = "writing the metric log works again"
			w.files.Logger.Info(message, "dir", w.files.Dir, "lost_seconds", w.stat.lost.Load())
			w.failing = false
		}
	}
	return nil
}

// writeSeconds writes seconds and returns the number of finished ones. Without an error, all are finished. After an
// error, these are the seconds before the first missing one. writeSeconds drops seconds that are not later than the
// last second of the log.
func (w *Writer) writeSeconds(seconds []pendingSecond) (n int, err error) {
	for i := range seconds {
		s := &seconds[i]
		if s.rows == 0 {
			continue
		}
		if err = w.files.append(s.start, s.lines); errors.Is(err, errOutOfOrder) {
			s.drop()
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

// countSecond adds a finished second to the metrics.
func (w *Writer) countSecond(s pendingSecond) {
	if !s.hasName {
		return
	}
	w.stat.seconds.Add(1)
	w.stat.rows.Add(s.rows)
	if s.lost {
		w.stat.lost.Add(1)
	}
}

// Close closes the files, unlocks the log and removes the Writer's metrics. A later Flush locks the log and opens the
// files again, unless another process has locked it. Seconds that the other process has logged are not written again.
func (w *Writer) Close() error {
	if w.unpublish != nil {
		w.unpublish()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.files.close()
}

// Files returns the paths of the log's data files, oldest first, without the indexes.
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

// Start runs Run in a new goroutine. The returned function stop cancels its context, waits for it, and returns its
// error. It may be called several times.
func (w *Writer) Start() (stop func() error) { return background.Start(w.Run) }

// stats holds the metrics of a Writer. The fields are atomic and not guarded by Writer.mu: a scrape must not wait for a
// slow disk.
type stats struct{ seconds, rows, errors, lost, last atomic.Int64 }

// metrics returns the metrics that a Writer publishes about itself.
func (w *Writer) metrics() (all []collector.Metric) {
	metric := func(name, unit, help string, n *atomic.Int64) {
		value := func() float64 { return float64(n.Load()) }
		all = append(all, collector.Metric{Name: name, Unit: unit, Help: help, Value: value})
	}
	metric("metriclog_seconds_total", "seconds",
		"Sealed seconds that the metric log has processed, including idle and lost ones.", &w.stat.seconds)
	metric("metriclog_rows_total", "", "Rows written to the metric log.", &w.stat.rows)
	metric("metriclog_errors_total", "",
		"Failed attempts to write the metric log, which are retried, or to read it.", &w.stat.errors)
	metric("metriclog_lost_seconds_total", "seconds", "Seconds missing from the metric log, "+
		"because it could not be written for too long or already had a later second.", &w.stat.lost)
	metric("metriclog_last_second_timestamp_seconds", "seconds",
		"Unix time of the last second in the metric log; 0 if the log is empty.", &w.stat.last)
	return all
}
