package metriclog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/background"
	"github.com/windowstat/windowstat/node"
)

// Writer writes the sealed seconds of a Collector to a log. It must be made with [New], and is safe for concurrent use. A
// second costs two system calls, one for the rows and one for the index, and a reused buffer.
type Writer struct {
	stats     *collector.Collector
	loc       *time.Location
	logger    *slog.Logger
	app       string
	zeroRows  bool
	first     int64  // index of the first second of this process
	unpublish func() // removes the metrics

	mu         sync.Mutex // guards what follows
	files      *files
	next       int64             // index of the first second to write
	seconds    []second          // memory for those that are written next
	records    []node.MetricNode // of one resource
	name       []byte            // its name, as in a line
	failing    bool
	stateFiles []string // names that StateFile returned

	stat stats
}

// maxBehind is how many seconds the writer may be behind; older ones are lost.
const maxBehind = 3600

// New makes a Writer for all seconds from the present one on, and its directory. It locks the log, removes what a crash left
// incomplete, and appends to the newest file if that is of today and has room. The Collector should begin after the last second
// of the log, see [Last].
//
// The error names every invalid option, and a directory that is not writable. It is also an error that another Writer, in this
// process or another, has the log, where the system can tell; [Writer.Close] and the end of the process release it.
func New(c *collector.Collector, o Options) (*Writer, error) {
	o.defaults()
	var errs []error
	if c == nil {
		errs = append(errs, errors.New("metriclog: no Collector"))
	}
	if err := errors.Join(append(errs, o.check())...); err != nil {
		return nil, err
	}
	w := &Writer{stats: c, loc: o.Location, logger: o.Logger, app: fileName(o.App), zeroRows: o.ZeroRows, files: o.files()}
	w.first = c.Seal().Open
	w.next = w.first
	last, err := w.files.resume()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("metriclog: %w", err), w.Close())
	}
	w.stat.last.Store(last)
	w.warnFuture()
	w.unpublish = c.Publish(w.metrics()...)
	return w, nil
}

// warnFuture warns if the log ends in the future, as after a start with a wrong clock: nothing is written until then, because
// no second may have two values.
func (w *Writer) warnFuture() {
	const tolerated = 300 // seconds
	last := w.stat.last.Load()
	name, ok := w.stats.Timeline().Name(w.first)
	if last > 0 && (!ok || last-name.Unix() > tolerated) {
		w.logger.Warn("metric log ends in the future; nothing is written until then. If the clock was wrong, move the files away and restart",
			"dir", w.files.dir, "end", time.Unix(last, 0).In(w.loc))
	}
}

// Run writes each second when it is sealed, until ctx ends. Then it waits for the open second, at most about a second, writes
// it, and closes the files. It returns the error of that last write.
func (w *Writer) Run(ctx context.Context) error {
	line := w.stats.Timeline()
	untilSealed := func() time.Duration {
		now := line.Now()
		return line.At(now).End.Sub(now)
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	done := ctx.Done()
	for last := false; ; {
		select {
		case <-timer.C:
		case <-done:
			done, last = nil, true
			timer.Reset(untilSealed())
			continue
		}
		err := w.Flush()
		if last {
			return errors.Join(err, w.Close())
		}
		timer.Reset(untilSealed())
	}
}

// Flush writes all sealed seconds that were not written yet. If one cannot be written, it and later ones are left for the next
// Flush.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	defer w.forget()
	m := w.stats.Seal()
	if skipped := m.Open - maxBehind - w.next; skipped > 0 {
		w.next += skipped
		w.stat.lost.Add(skipped)
	}
	for w.next < m.Open {
		for i := range w.read(m) {
			if err := w.write(&w.seconds[i]); err != nil {
				w.stat.errors.Add(1)
				if !w.failing {
					w.logger.Error("cannot write the metric log; retrying every second", "dir", w.files.dir, "err", err)
				}
				w.failing = true
				return fmt.Errorf("metriclog: %w", err)
			}
			w.next++
			if w.failing {
				w.logger.Info("writing the metric log works again", "dir", w.files.dir, "lost_seconds", w.stat.lost.Load())
				w.failing = false
			}
		}
	}
	return nil
}

// write writes one second.
func (w *Writer) write(s *second) error {
	if !s.named {
		return nil
	}
	if s.rows > 0 {
		if err := w.relock(); err != nil {
			return err
		}
	}
	if s.rows > 0 && s.start.Unix() <= w.stat.last.Load() {
		s.lost, s.rows = true, 0
	}
	if s.rows > 0 {
		if err := w.files.append(s.start, s.lines); err != nil {
			return err
		}
		w.stat.last.Store(s.start.Unix())
	}
	w.stat.seconds.Add(1)
	w.stat.rows.Add(s.rows)
	if s.lost {
		w.stat.lost.Add(1)
	}
	return nil
}

// relock locks the log again where another process may have had it, and reads how far it goes now.
func (w *Writer) relock() error {
	if w.files.held() {
		return nil
	}
	last, err := w.files.resume()
	if err != nil {
		return errors.Join(err, w.files.close())
	}
	w.stat.last.Store(max(w.stat.last.Load(), last))
	return nil
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
