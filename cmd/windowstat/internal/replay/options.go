package replay

import (
	"io"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/accesslog"
)

// Options say what is replayed, and how.
type Options struct {
	// Files are the logs, "-" is Stdin. Those of one time are merged, the others come one after the other, whatever their
	// order here.
	Files []string
	Stdin io.Reader
	// Format is that of all files; if nil, each one's is guessed.
	Format *accesslog.Format
	// Zone is that of times without one.
	Zone *time.Location
	// Tolerance is by how much lines may be out of order, in whole seconds.
	Tolerance time.Duration
	// Exceptions are the statuses of calls that failed, Blocks those of calls that were refused.
	Exceptions, Blocks Statuses
	// Depth is how many segments of a path a resource's name keeps, MaxResources how many resources are kept apart.
	Depth, MaxResources int
	// Progress is told how many bytes and lines were read so far, once in a while, and how many bytes there are, 0 if that
	// is not known; nil is nobody.
	Progress func(read, size, lines int64)
}
