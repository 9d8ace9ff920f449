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

// Defaults of [Options], as in Sentinel.
const (
	DefaultMaxFileSize = 50 << 20
	DefaultMaxFiles    = 8
)

// Options configure a [Writer]. Dir and App are required.
type Options struct {
	// Dir is the directory. It is made if needed.
	Dir string
	// App is the application's name, which file names begin with.
	App string
	// Location is the time zone of dates, and of the midnight at which a new file begins; time.Local if nil.
	Location *time.Location

	// MaxFileSize is the size in bytes at which the next file begins: [DefaultMaxFileSize] if zero, or an eighth of MaxBytes if
	// that is less, because the current file is never deleted.
	MaxFileSize int64
	// MaxFiles is how many files are kept, the current one included; [DefaultMaxFiles] if it, MaxBytes and MaxAge are all zero.
	// MaxBytes limits their total size with indexes, and MaxAge the age of a file's last second; zero is no limit. Files are
	// deleted when a new one is started, and at least once a minute.
	MaxFiles int
	MaxBytes int64
	MaxAge   time.Duration

	// ZeroRows writes a row for every resource in every second. Without it there are rows only for seconds with events or calls
	// in flight.
	ZeroRows bool
	// Sync is the fsync interval, in whole seconds. Zero leaves it to the operating system, and a power cut may lose about the
	// last half minute.
	Sync time.Duration
	// Logger receives one message when writing fails and one when it works again; slog.Default if nil.
	Logger *slog.Logger
}

// defaults fills in defaults.
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

// Check returns everything that is wrong with the options, as [collector.OptionError]s, except for the directory, which it does not
// touch.
func (o Options) Check() error {
	o.defaults()
	var errs []error
	wrong := func(is bool, field, format string, args ...any) {
		if is {
			errs = append(errs, &collector.OptionError{Package: "metriclog", Field: field, Err: fmt.Errorf(format, args...)})
		}
	}
	forbidden := func(r rune) bool { return r < ' ' || r == '/' || r == '\\' || r == 0x7f }
	wrong(o.App == "" || len(o.App) > 100 || !utf8.ValidString(o.App) || strings.ContainsFunc(o.App, forbidden),
		"App", "%.120q: a name of 1 to 100 bytes of UTF-8 without slashes and control characters is needed", o.App)
	wrong(o.MaxFileSize < 1, "MaxFileSize", "%d; at least 1 is needed", o.MaxFileSize)
	wrong(o.MaxFiles < 0, "MaxFiles", "%d; at least 1 is needed, or 0 for the default", o.MaxFiles)
	wrong(o.MaxBytes < 0, "MaxBytes", "%d; at least 1 is needed, or 0 for no limit", o.MaxBytes)
	wrong(o.MaxAge < 0 || o.MaxAge%time.Second != 0, "MaxAge", "%v; whole seconds are needed, or 0 for no limit", o.MaxAge)
	wrong(o.Sync < 0 || o.Sync%time.Second != 0, "Sync", "%v; whole seconds are needed, or 0 to leave it to the operating system", o.Sync)
	wrong(o.Dir == "", "Dir", "is empty")
	return errors.Join(errs...)
}

// open checks the options, makes the directory, and resumes the log. The error names every option that is wrong, or the directory
// that cannot be used.
func (o *Options) open() (*files, error) {
	o.defaults()
	if err := o.Check(); err != nil {
		return nil, err
	}
	f := &files{Options: *o, log: logName(o.App)}
	if err := f.resume(); err != nil {
		return nil, &collector.OptionError{Package: "metriclog", Field: "Dir", Err: errors.Join(err, f.close())}
	}
	return f, nil
}

// Last returns the last second in the log, the zero Time if it is empty. Give it to collector.Options.After, so that no second
// has two values. Like [New] it makes the directory and removes what a crash left incomplete; it returns the same errors.
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
