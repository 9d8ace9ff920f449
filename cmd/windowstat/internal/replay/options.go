package replay

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/accesslog"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// Options configures a replay.
type Options struct {
	// Files are the names of the logs, in any order; "-" means Stdin. The times of the logs may overlap. A [Follower]
	// also accepts patterns.
	Files []string
	Stdin io.Reader
	// RotatedDirs are directories into which rotation moves files, in addition to the directories of the logs.
	RotatedDirs []string
	// Format is the format of all files. If it is nil, the format of each file is detected.
	Format *accesslog.Format
	// From and To are the first and the last second of the lines that count. Zero means no bound.
	From, To time.Time
	// Zone is the time zone of times without a zone.
	Zone *time.Location
	// Tolerance is the maximum delay of a line, in whole seconds. Later lines are not counted.
	Tolerance time.Duration
	// Exceptions are the statuses of failed calls. Blocks are the statuses of refused calls.
	Exceptions, Blocks Statuses
	// Name returns the name of a request, or "" for an unmatched request. If it is nil, method and path name a request.
	Name func(*http.Request) string
	// PathDepth is the number of path segments in a name of method and path.
	PathDepth int
	// Names, if not nil, configures [httpstat.Names], which decides which names are earned. The replay sets MaxNames
	// and Now itself.
	Names *httpstat.NamesOptions
	// MaxResources is the maximum number of resources, in addition to the resources of routes.
	MaxResources int
	// Note, if not nil, receives messages about doubtful interpretations of a log.
	Note func(text string)
}

// Statuses is a set of HTTP statuses. The zero value is empty.
type Statuses [1000]bool

// status matches one status. All statuses have three digits, so comparing the texts compares the numbers.
var status = regexp.MustCompile(`^[1-9][0-9]{2}$`)

// ParseStatuses parses a list of statuses, classes and ranges, such as 429,5xx or 500-503. An empty list is valid.
func ParseStatuses(list string) (s Statuses, err error) {
	if strings.TrimSpace(list) == "" {
		return s, nil
	}
	var errs []error
	for part := range strings.SplitSeq(list, ",") {
		part = strings.TrimSpace(part)
		from, to, ranged := strings.Cut(part, "-")
		if !ranged { // a class, or one status
			class := strings.ToLower(part)
			from, to = strings.Replace(class, "xx", "00", 1), strings.Replace(class, "xx", "99", 1)
		}
		if !status.MatchString(from) || !status.MatchString(to) || from > to {
			errs = append(errs, fmt.Errorf("%q is not a status (429), a class (5xx) or a range (500-503)", part))
			continue
		}
		first, _ := strconv.Atoi(from)
		last, _ := strconv.Atoi(to)
		for i := first; i <= last; i++ {
			s[i] = true
		}
	}
	return s, errors.Join(errs...)
}

// Has reports whether a status is in the set.
func (s *Statuses) Has(status int) bool { return status >= 0 && status < len(s) && s[status] }

// Common returns a status that is in both sets, or 0.
func (s *Statuses) Common(o *Statuses) (status int) {
	for i := range s {
		if s[i] && o[i] {
			return i
		}
	}
	return 0
}
