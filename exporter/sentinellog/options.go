package sentinellog

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/gather"
	"github.com/windowstat/windowstat/exporter/internal/table"
)

// Defaults of [Options].
const (
	DefaultLag     = 5 * time.Second
	DefaultHistory = 10 * time.Minute
	DefaultKeep    = 24 * time.Hour
)

// Options configure a [Follower]. Dir is required.
type Options struct {
	// Dir is the directory of the logs. It may be read-only.
	Dir string
	// App is the application whose logs are followed, as in file names. If it is empty, all logs are followed.
	App string
	// StateDir is the directory of the positions, the runs and the lock. It must exist, and each Follower needs its
	// own. The default is Dir.
	StateDir string
	// Sum adds the processes of an application, and omits the label pid. Rows that are logged later than Lag are then
	// lost, because a second that was sent does not change. Maxima are not added: the highest one is a lower bound.
	Sum bool
	// Lag is the time between the end of a second and its export, in whole seconds; [DefaultLag] if zero. Sentinel
	// writes the rows of a second about a second after its end.
	Lag time.Duration
	// Keep is the longest absence after which a scraper or a push gets all seconds, as far as the log has them;
	// [DefaultKeep] if zero. The last ten minutes are kept in memory, older seconds are read from the log.
	Keep time.Duration
	// MaxBytes limits the memory for rows, 24 MiB if zero. With more rows, fewer seconds are kept in memory.
	MaxBytes int
	// Namespace is the prefix of all metric names. The default is windowstat.
	Namespace string
	// Logger receives a message for each file that cannot be read, or has malformed lines. The default is slog.Default.
	Logger *slog.Logger
}

// defaults sets the fields that are zero to their defaults.
func (o *Options) defaults() {
	o.StateDir = cmp.Or(o.StateDir, o.Dir)
	o.Lag, o.Keep = cmp.Or(o.Lag, DefaultLag), cmp.Or(o.Keep, DefaultKeep)
	o.MaxBytes = cmp.Or(o.MaxBytes, 24<<20)
	o.Namespace, o.Logger = cmp.Or(o.Namespace, table.Namespace), cmp.Or(o.Logger, slog.Default())
}

// Check returns all invalid options as [collector.OptionError]s. It opens no files.
func (o Options) Check() error {
	o.defaults()
	var errs []error
	wrong := func(field, format string, args ...any) {
		errs = append(errs, &collector.OptionError{
			Package: "sentinellog", Field: field, Err: fmt.Errorf(format, args...),
		})
	}
	if o.Dir == "" {
		wrong("Dir", "a directory is required")
	}
	if o.Lag < time.Second || o.Lag > DefaultHistory/2 || o.Lag%time.Second != 0 {
		wrong("Lag", "%v; whole seconds from 1s to %v are allowed", o.Lag, DefaultHistory/2)
	}
	const maxKeep = 31 * 24 * time.Hour
	if o.Keep < DefaultHistory || o.Keep > maxKeep || o.Keep%time.Second != 0 {
		wrong("Keep", "%v; whole seconds from %v to %v are allowed", o.Keep, DefaultHistory, maxKeep)
	}
	if o.MaxBytes < 0 {
		wrong("MaxBytes", "%d is negative", o.MaxBytes)
	}
	if err := gather.CheckNamespace(o.Namespace); err != nil {
		wrong("Namespace", "%w", err)
	}
	return errors.Join(errs...)
}
