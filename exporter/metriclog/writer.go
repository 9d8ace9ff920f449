package metriclog

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/node"
)

// Defaults of [Options], Sentinel's.
const (
	DefaultMaxFileSize = 50 << 20
	DefaultMaxFiles    = 8
)

// Options configure a [Writer].
type Options struct {
	// Dir is the directory. It is made if it does not exist.
	Dir string
	// App is the application's name, the first part of the files' names.
	App string
	// MaxFileSize is the size in bytes from which on a file is not appended to, [DefaultMaxFileSize] if zero.
	MaxFileSize int64
	// MaxFiles is how many files are kept, the one being written included, [DefaultMaxFiles] if zero.
	MaxFiles int
	// Location is the time zone of dates and of the day on which a new file begins, time.Local if nil.
	Location *time.Location
	// Logger is told when writing begins to fail and when it works again; slog.Default if nil.
	Logger *slog.Logger
}

// Writer writes the sealed seconds of a Collector. It must be made with [New]. It is safe for concurrent use. Writing
// costs one system call a second, one more for the index, and no memory but a buffer for one second.
type Writer struct {
	stats  *collector.Collector
	loc    *time.Location
	logger *slog.Logger
	app    string
	first  int64 // index of the first second of this process

	mu      sync.Mutex // guards what follows
	files   files
	next    int64 // index of the first second that is not dealt with
	buf     []byte
	failing bool
	stat    stats
}

type stats struct{ seconds, rows, errors, lost, last int64 }

// lookBack is how many seconds back, at most, the writer looks for seconds that were not dealt with.
const lookBack = 3600

// defaults fills in what the options do not say.
func (o *Options) defaults() {
	if o.MaxFileSize == 0 {
		o.MaxFileSize = DefaultMaxFileSize
	}
	if o.MaxFiles == 0 {
		o.MaxFiles = DefaultMaxFiles
	}
	if o.Location == nil {
		o.Location = time.Local
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
}

// check makes the directory, and finds everything that is wrong with the options.
func (o *Options) check() error {
	var errs []error
	if o.App == "" || strings.ContainsFunc(o.App, func(r rune) bool { return r < ' ' || r == '/' || r == '\\' || r == 0x7f }) {
		errs = append(errs, fmt.Errorf("metriclog: App %q: a name without slashes and control characters is needed", o.App))
	}
	if o.MaxFileSize < 1 {
		errs = append(errs, fmt.Errorf("metriclog: MaxFileSize is %d; at least 1 is needed", o.MaxFileSize))
	}
	if o.MaxFiles < 1 {
		errs = append(errs, fmt.Errorf("metriclog: MaxFiles is %d; at least 1 is needed", o.MaxFiles))
	}
	if o.Dir == "" {
		errs = append(errs, errors.New("metriclog: Dir is empty"))
	} else if err := writable(o.Dir); err != nil {
		errs = append(errs, fmt.Errorf("metriclog: Dir: %w", err))
	}
	return errors.Join(errs...)
}

// app is the application's name as it stands in the names of files.
func (o *Options) app() string { return strings.ReplaceAll(o.App, ".", "-") }

func (o *Options) files() files {
	return files{dir: o.Dir, base: o.app() + "-metrics.log", maxSize: o.MaxFileSize, maxFiles: o.MaxFiles}
}

// New makes a Writer for all seconds from the present one on, and its directory. If the newest file is of today and
// has room, it will be appended to, after what a crash left half-written is removed. The Collector should begin after
// what the log holds, see [Last].
//
// The error names everything that is wrong with the options, the directory included: it must be one, and writable.
func New(c *collector.Collector, o Options) (*Writer, error) {
	o.defaults()
	var errs []error
	if c == nil {
		errs = append(errs, errors.New("metriclog: no Collector"))
	}
	if err := errors.Join(append(errs, o.check())...); err != nil {
		return nil, err
	}
	w := &Writer{stats: c, loc: o.Location, logger: o.Logger, app: o.app(), files: o.files()}
	w.first = c.Seal().Open
	w.next = w.first
	last, err := w.files.resume()
	if err != nil {
		return nil, fmt.Errorf("metriclog: %w", err)
	}
	w.stat.last = last
	return w, nil
}

// Last is the last second that the log holds, the zero Time if there is none: for collector.Options.After, so that no
// second has two values. Like [New] it makes the directory, and removes what a crash left half-written; the error is
// that of New.
func Last(o Options) (time.Time, error) {
	o.defaults()
	if err := o.check(); err != nil {
		return time.Time{}, err
	}
	f := o.files()
	last, err := f.resume()
	if err != nil {
		return time.Time{}, fmt.Errorf("metriclog: %w", err)
	}
	if last == 0 {
		return time.Time{}, nil
	}
	return time.Unix(last, 0), nil
}

// writable makes the directory if need be, and a file in it for a try.
func writable(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".writable-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Run writes each second when it is sealed, until ctx ends. Then it waits for the second that is open, at most about
// a second, writes that one too, and closes the files. It returns the error of that last write.
func (w *Writer) Run(ctx context.Context) error {
	line := w.stats.Timeline()
	untilSealed := func() time.Duration {
		now := line.Now()
		return line.At(now).End - now
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
		w.stat.lost += skipped
	}
	for ; w.next < m.Open; w.next++ {
		if err := w.second(w.next, m.Resources); err != nil {
			w.stat.errors++
			if !w.failing {
				w.logger.Error("metric log cannot be written; trying again each second", "dir", w.files.dir, "err", err)
			}
			w.failing = true
			return fmt.Errorf("metriclog: %w", err)
		}
		if w.failing {
			w.logger.Info("metric log is written again", "dir", w.files.dir, "lost_seconds", w.stat.lost)
			w.failing = false
		}
	}
	return nil
}

// second writes the rows of one second.
func (w *Writer) second(index int64, resources []*collector.Resource) error {
	name, ok := w.stats.Timeline().Name(index)
	if !ok {
		return nil // the wall clock was set back; the timeline counts it
	}
	w.buf = w.buf[:0]
	rows, lost := int64(0), false
	head := head(name.In(w.loc))
	row := func(name string, v *node.View) {
		if index < v.Since() {
			return
		}
		switch m, ok := v.Second(index); {
		case !ok:
			lost = true
		case !m.Idle():
			w.buf = appendLine(w.buf, head, name, &m)
			rows++
		}
	}
	for _, r := range resources {
		row(r.Name(), r.View())
	}
	row(collector.InboundTotal, w.stats.Inbound())
	if rows > 0 && name.Unix() <= w.stat.last {
		lost, rows = true, 0
	}
	if rows > 0 {
		if err := w.files.append(name.In(w.loc), w.buf); err != nil {
			return err
		}
		w.stat.last = name.Unix()
	}
	w.stat.seconds++
	w.stat.rows += rows
	if lost {
		w.stat.lost++
	}
	return nil
}

// Close closes the files. A later Flush opens them again.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.files.close()
}

// Files are the paths of the log's files, oldest first, without their indexes.
func (w *Writer) Files() ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	all, err := w.files.list()
	var paths []string
	for _, x := range all {
		paths = append(paths, filepath.Join(w.files.dir, w.files.name(x)))
	}
	return paths, err
}

// Self implements [exporter.Source].
func (w *Writer) Self(yield func(name string, value float64, labels ...string)) {
	w.mu.Lock()
	s := w.stat
	w.mu.Unlock()
	yield(exporter.LogSeconds, float64(s.seconds))
	yield(exporter.LogRows, float64(s.rows))
	yield(exporter.LogErrors, float64(s.errors))
	yield(exporter.LogLostSeconds, float64(s.lost))
	yield(exporter.LogLastSecond, float64(s.last))
}
