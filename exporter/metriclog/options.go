package metriclog

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"
	"unicode/utf8"
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
	// PID puts the number of the process into the files' names, so that several processes of one application can log to
	// one directory. The files of those that are gone count as this one's where old files are deleted.
	PID bool
	// Location is the time zone of dates and of the day on which a new file begins, time.Local if nil.
	Location *time.Location

	// MaxFileSize is the size in bytes from which on a file is not appended to, [DefaultMaxFileSize] if zero, or an eighth of
	// MaxBytes if that is less: the file that is being written is never deleted.
	MaxFileSize int64
	// MaxFiles is how many files are kept, the one being written included, [DefaultMaxFiles] if zero and MaxBytes and
	// MaxAge are zero, too. Those say how many bytes they may have together, with indexes, and how old the last second of a
	// file may be; zero is no limit. It is looked for files to delete once a minute. With JSON, both logs may have as much.
	MaxFiles int
	MaxBytes int64
	MaxAge   time.Duration

	// ZeroRows writes a row for each second of each resource. Without it there is none for a second in which nothing
	// happened and nothing was in flight.
	ZeroRows bool
	// JSON writes a second log beside the first, of what that has no room for.
	JSON bool
	// Sync is how often the disk is made to keep what was written, in whole seconds. Zero leaves it to the operating
	// system, which does so within half a minute or so: that is what a power cut may cost.
	Sync time.Duration
	// Logger is told when writing begins to fail and when it works again; slog.Default if nil.
	Logger *slog.Logger
}

// defaults fills in what the options do not say.
func (o *Options) defaults() {
	if o.MaxFileSize == 0 {
		o.MaxFileSize = DefaultMaxFileSize
		if o.MaxBytes > 0 {
			o.MaxFileSize = min(o.MaxFileSize, max(o.MaxBytes/8, 1))
		}
	}
	if o.MaxFiles == 0 && o.MaxBytes == 0 && o.MaxAge == 0 {
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
	errs := []error{o.Check()}
	if o.Dir != "" {
		if err := writable(o.Dir); err != nil {
			errs = append(errs, fmt.Errorf("metriclog: Dir: %w", err))
		}
	}
	return errors.Join(errs...)
}

// Check returns everything that is wrong with the options, as [New] does, but for what is wrong with the directory, which it
// does not look at.
func (o Options) Check() error {
	o.defaults()
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf("metriclog: "+format, args...)) }
	if o.App == "" || len(o.App) > 100 || !utf8.ValidString(o.App) || strings.ContainsFunc(o.App, func(r rune) bool { return r < ' ' || r == '/' || r == '\\' || r == 0x7f }) {
		wrong("App %.120q: a name of 1 to 100 bytes of UTF-8 without slashes and control characters is needed", o.App)
	}
	if o.MaxFileSize < 1 {
		wrong("MaxFileSize is %d; at least 1 is needed", o.MaxFileSize)
	}
	if o.MaxFiles < 0 {
		wrong("MaxFiles is %d; at least 1 is needed, or 0 for the default", o.MaxFiles)
	}
	if o.MaxBytes < 0 {
		wrong("MaxBytes is %d; at least 1 is needed, or 0 for no limit", o.MaxBytes)
	}
	if o.MaxAge < 0 || o.MaxAge%time.Second != 0 {
		wrong("MaxAge is %v; whole seconds are needed, or 0 for no limit", o.MaxAge)
	}
	if o.Sync < 0 || o.Sync%time.Second != 0 {
		wrong("Sync is %v; whole seconds are needed, or 0 to leave it to the operating system", o.Sync)
	}
	if o.Dir == "" {
		wrong("Dir is empty")
	}
	return errors.Join(errs...)
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

// files are the files of a log of a kind.
func (o *Options) files(f format) *files {
	pid := 0
	if o.PID {
		pid = os.Getpid()
	}
	return &files{
		format: f, dir: o.Dir, log: logName(o.App, f.kind, pid), maxSize: o.MaxFileSize, sync: o.Sync,
		keep: retention{o.MaxFiles, o.MaxBytes, o.MaxAge},
	}
}

// Last is the last second that the log holds, the zero Time if there is none: for collector.Options.After, so that no
// second has two values. With PID it is that of all processes' logs. Like [New] it makes the directory, and removes what
// a crash left half-written; the error is that of New.
func Last(o Options) (time.Time, error) {
	o.defaults()
	if err := o.check(); err != nil {
		return time.Time{}, err
	}
	var last int64
	for _, format := range o.formats() {
		f := o.files(format)
		second, err := f.resume()
		if err = errors.Join(err, f.close()); err != nil {
			return time.Time{}, fmt.Errorf("metriclog: %w", err)
		}
		last = max(last, second)
		if !o.PID {
			continue
		}
		app, _ := parseLogName(f.log, f.kind)
		all, err := segments(f.dir, f.kind, func(log string) bool {
			other, pid := parseLogName(log, f.kind)
			return other == app && pid != 0
		})
		for _, s := range all { // of several logs, the last file need not have the last second
			if err == nil {
				second, err = f.last([]segment{s})
				last = max(last, second)
			}
		}
		if err != nil {
			return time.Time{}, fmt.Errorf("metriclog: %w", err)
		}
	}
	if last == 0 {
		return time.Time{}, nil
	}
	return time.Unix(last, 0), nil
}

// formats are those that are written.
func (o *Options) formats() []format {
	if o.JSON {
		return []format{sentinel, jsonl}
	}
	return []format{sentinel}
}
