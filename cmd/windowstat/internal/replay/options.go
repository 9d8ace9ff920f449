package replay

import (
	"io"
	"net/http"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/accesslog"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// Options configure a replay.
type Options struct {
	// Files are the logs, in any order; "-" is Stdin. Logs that overlap in time are merged, others follow one another. A
	// [Follower] takes patterns, too.
	Files []string
	Stdin io.Reader
	// RotatedDirs are directories, besides those of the logs, into which rotation moves files.
	RotatedDirs []string
	// Format is the format of all files; nil means that each one's is detected.
	Format *accesslog.Format
	// Zone is the time zone of times without one.
	Zone *time.Location
	// Tolerance is how far lines may be out of order, in whole seconds.
	Tolerance time.Duration
	// Exceptions are the statuses of failed calls, Blocks those of rejected calls.
	Exceptions, Blocks Statuses
	// Name names a request; the empty name is unmatched. Nil means that requests are named after their method and path.
	Name func(*http.Request) string
	// PathDepth is how many segments of a path such a name keeps.
	PathDepth int
	// Names, if not nil, are the options of [httpstat.Names] by which the names are earned. MaxNames and Now are not used.
	Names *httpstat.NamesOptions
	// Given are resources that exist beside MaxResources; MaxResources is how many others are kept apart.
	Given        []string
	MaxResources int
	// Note, if not nil, is called with what may be wrong with how a log is read.
	Note func(text string)
	// Progress, if not nil, is called now and then with the bytes and lines read so far, and the size of all files in bytes,
	// 0 if it is unknown.
	Progress func(read, size, lines int64)
}
