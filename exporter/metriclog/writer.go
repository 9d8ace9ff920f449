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

// Writer writes the sealed seconds of a Collector. It must be made with [New]. It is safe for concurrent use. Writing
// costs one system call a second, one more for the index, and no memory but a buffer for one second.
type Writer struct {
	stats    *collector.Collector
	loc      *time.Location
	logger   *slog.Logger
	app      string
	zeroRows bool
	first    int64  // index of the first second of this process
	withdraw func() // takes the metrics away

	mu      sync.Mutex // guards what follows
	files   *files
	json    *files // nil without it
	next    int64  // index of the first second that is not dealt with
	buf     []byte
	jsonBuf jsonLines
	failing bool
	given   []string // state files that are somebody's

	stat stats
}

// lookBack is how many seconds back, at most, the writer looks for seconds that were not dealt with.
const lookBack = 3600

// New makes a Writer for all seconds from the present one on, and its directory. If the newest file is of today and
// has room, it will be appended to, after what a crash left half-written is removed. The Collector should begin after
// what the log holds, see [Last].
//
// The error names everything that is wrong with the options, the directory included: it must be one, and writable. Where
// the system can tell, it is also an error that another Writer, of this process or another, has the log; it is free
// again after [Writer.Close] or at the end of the process.
func New(c *collector.Collector, o Options) (*Writer, error) {
	o.defaults()
	var errs []error
	if c == nil {
		errs = append(errs, errors.New("metriclog: no Collector"))
	}
	if err := errors.Join(append(errs, o.check())...); err != nil {
		return nil, err
	}
	w := &Writer{stats: c, loc: o.Location, logger: o.Logger, app: fileName(o.App), zeroRows: o.ZeroRows, files: o.files(sentinel)}
	w.jsonBuf.untimed = c.DurationsUnknown()
	w.first = c.Seal().Open
	w.next = w.first
	last, err := w.files.resume()
	if err == nil && o.JSON {
		var second int64
		w.json = o.files(jsonl)
		second, err = w.json.resume()
		last = max(last, second)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("metriclog: %w", err), w.Close())
	}
	w.stat.last.Store(last)
	w.warn()
	w.withdraw = c.Publish(w.metrics()...)
	return w, nil
}

// warn says if the log ends in the future, as after a start with a wrong clock: no second has two values, so nothing is
// written until then.
func (w *Writer) warn() {
	const much = 300 // seconds; what is less is soon over
	last := w.stat.last.Load()
	name, ok := w.stats.Timeline().Name(w.first)
	if last > 0 && (!ok || last-name.Unix() > much) {
		w.logger.Warn("metric log ends in the future, and nothing is written until then; move its files away and start again if the clock was wrong",
			"dir", w.files.dir, "end", time.Unix(last, 0).In(w.loc))
	}
}

// Run writes each second when it is sealed, until ctx ends. Then it waits for the second that is open, at most about
// a second, writes that one too, and closes the files. It returns the error of that last write.
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

// Flush writes all sealed seconds that were not written yet. If one cannot be written, it and those after it are left
// for the next Flush.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	m := w.stats.Seal()
	if skipped := m.Open - lookBack - w.next; skipped > 0 {
		w.next += skipped
		w.stat.lost.Add(skipped)
	}
	for ; w.next < m.Open; w.next++ {
		if err := w.second(w.next, m.Resources); err != nil {
			w.stat.errors.Add(1)
			if !w.failing {
				w.logger.Error("metric log cannot be written; trying again each second", "dir", w.files.dir, "err", err)
			}
			w.failing = true
			return fmt.Errorf("metriclog: %w", err)
		}
		if w.failing {
			w.logger.Info("metric log is written again", "dir", w.files.dir, "lost_seconds", w.stat.lost.Load())
			w.failing = false
		}
	}
	return nil
}

// second writes the rows of one second. That of all inbound traffic is the last one, and there whenever another is: so it
// shows that the second is there as a whole.
func (w *Writer) second(index int64, resources []*collector.Resource) error {
	name, ok := w.stats.Timeline().Name(index)
	if !ok {
		return nil // the wall clock was set back; the timeline counts it
	}
	start := name.In(w.loc)
	w.buf = w.buf[:0]
	w.jsonBuf.begin(start)
	head := appendHead(nil, start)
	rows, lost := int64(0), false
	write := func(name string, r *collector.Resource, v *node.View, always bool) {
		if index < v.Since() {
			return
		}
		m, ok := v.Second(index)
		lost = lost || !ok
		if !ok || m.Idle() && !always {
			return
		}
		rows++
		w.buf = appendLine(w.buf, head, name, &m)
		if w.json != nil {
			w.jsonBuf.add(name, r, v, index, &m)
		}
	}
	for _, r := range resources {
		write(r.Name(), r, r.View().Node(), w.zeroRows)
	}
	write(collector.InboundTotal, nil, w.stats.Inbound().Node(), w.zeroRows || rows > 0)
	if rows > 0 {
		if err := w.regain(); err != nil {
			return err
		}
	}
	if rows > 0 && name.Unix() <= w.stat.last.Load() {
		lost, rows = true, 0
	}
	if rows > 0 {
		if err := w.append(start); err != nil {
			return err
		}
		w.stat.last.Store(name.Unix())
	}
	w.stat.seconds.Add(1)
	w.stat.rows.Add(rows)
	if lost {
		w.stat.lost.Add(1)
	}
	return nil
}

// regain takes the logs again where another process could have had them meanwhile, and looks what they hold now.
func (w *Writer) regain() error {
	for _, f := range []*files{w.files, w.json} {
		if f == nil || f.held() {
			continue
		}
		last, err := f.resume()
		if err != nil {
			return errors.Join(err, f.close())
		}
		w.stat.last.Store(max(w.stat.last.Load(), last))
	}
	return nil
}

// append writes a second to both logs, or to none.
func (w *Writer) append(start time.Time) error {
	if err := w.files.append(start, w.buf); err != nil || w.json == nil {
		return err
	}
	if err := w.json.append(start, w.jsonBuf.bytes()); err != nil {
		return errors.Join(err, w.files.undo())
	}
	return nil
}

// Close closes the files, takes the Writer's metrics away, and others can have the log. A later Flush takes the log again, if
// nobody has it, and opens the files; seconds that others logged meanwhile are not written again.
func (w *Writer) Close() error {
	if w.withdraw != nil {
		w.withdraw()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.files.close()
	if w.json != nil {
		err = errors.Join(err, w.json.close())
	}
	return err
}

// Files are the paths of the log's files, oldest first, without their indexes.
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

// Start is Run in a goroutine. stop ends it, waits for it and returns its error; it may be called several times.
func (w *Writer) Start() (stop func() error) { return background.Start(w.Run) }
