package metriclog

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/windowstat/windowstat/collector"
)

// Defaults of [Options], the same as in Sentinel.
const (
	DefaultMaxFileSize = 50 << 20
	DefaultMaxFiles    = 8
)

// Options configure a [Writer]. Dir and App are required.
type Options struct {
	// Dir is the directory of the log. [New] creates it if needed.
	Dir string
	// App is the application's name. File names begin with it.
	App string
	// Location is the time zone of dates. A new file begins at its midnight. The default is time.Local.
	Location *time.Location

	// MaxFileSize starts a new file when the current one has this size in bytes. The default is the smaller of
	// [DefaultMaxFileSize] and, if MaxBytes is set, an eighth of MaxBytes: the current file is never deleted.
	MaxFileSize int64
	// MaxFiles is the number of files to keep, including the current one. The default is [DefaultMaxFiles] if MaxFiles,
	// MaxBytes and MaxAge are all zero, and no limit otherwise. Old files are deleted when a new file begins, and at
	// least once a minute.
	MaxFiles int
	// MaxBytes limits the total size in bytes of all files and their indexes. Zero means no limit.
	MaxBytes int64
	// MaxAge limits the age of a file's last second, in whole seconds. Zero means no limit.
	MaxAge time.Duration

	// ZeroRows writes a row for every resource in every second. By default, seconds without events and calls in flight
	// have no rows.
	ZeroRows bool
	// Sync is the fsync interval, in whole seconds. By default the operating system decides when to write to disk, and
	// a power cut may lose about the last half minute.
	Sync time.Duration
	// Logger receives a message when writing fails and when it works again; slog.Default if nil.
	Logger *slog.Logger
}

// defaults replaces zero fields with their defaults.
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
	o.Location, o.Logger = cmp.Or(o.Location, time.Local), cmp.Or(o.Logger, slog.Default())
}

// Check returns an error that names every invalid option, each as a [collector.OptionError]. Check does not access the
// directory.
func (o Options) Check() error {
	o.defaults()
	var errs []error
	wrong := func(invalid bool, field, format string, args ...any) {
		if invalid {
			err := fmt.Errorf(format, args...)
			errs = append(errs, &collector.OptionError{Package: "metriclog", Field: field, Err: err})
		}
	}
	// File names contain App.
	forbidden := func(r rune) bool { return r < ' ' || r == '/' || r == '\\' || r == 0x7f }
	wrong(o.App == "" || len(o.App) > 100 || !utf8.ValidString(o.App) || strings.ContainsFunc(o.App, forbidden),
		"App", "%.120q; 1 to 100 bytes of UTF-8 without slashes and control characters are needed", o.App)
	wrong(o.MaxFileSize < 1, "MaxFileSize", "%d; at least 1 is needed", o.MaxFileSize)
	wrong(o.MaxFiles < 0, "MaxFiles", "%d; at least 1 is needed, or 0 for the default", o.MaxFiles)
	wrong(o.MaxBytes < 0, "MaxBytes", "%d; at least 1 is needed, or 0 for no limit", o.MaxBytes)
	wrong(o.MaxAge < 0 || o.MaxAge%time.Second != 0,
		"MaxAge", "%v; whole seconds are needed, or 0 for no limit", o.MaxAge)
	wrong(o.Sync < 0 || o.Sync%time.Second != 0,
		"Sync", "%v; whole seconds are needed, or 0 to leave syncing to the operating system", o.Sync)
	wrong(o.Dir == "", "Dir", "is empty")
	return errors.Join(errs...)
}

// open checks the options, creates the directory, locks the log and opens it. The error names every invalid option, or
// the directory if it cannot be used.
func (o *Options) open() (*files, error) {
	o.defaults()
	if err := o.Check(); err != nil {
		return nil, err
	}
	f := &files{Options: *o, log: logName(o.App)}
	if err := f.reopen(); err != nil {
		return nil, &collector.OptionError{Package: "metriclog", Field: "Dir", Err: errors.Join(err, f.close())}
	}
	return f, nil
}

// Last returns the last second in the log, or the zero Time if the log is empty. Pass it to collector.Options.After;
// otherwise a second could get two values. Like [New], Last creates the directory and removes incomplete seconds that a
// crash left. It returns the same errors.
func Last(o Options) (time.Time, error) {
	f, err := o.open()
	if err != nil {
		return time.Time{}, err
	}
	if err := f.close(); err != nil {
		return time.Time{}, fmt.Errorf("metriclog: %w", err)
	}
	if f.last == 0 {
		return time.Time{}, nil
	}
	return time.Unix(f.last, 0), nil
}
