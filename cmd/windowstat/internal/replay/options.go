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
	// MaxResources is how many resources are kept apart, beside those of routes.
	MaxResources int
	// Note, if not nil, is called with what may be wrong with how a log is read.
	Note func(text string)
}

// Statuses is a set of HTTP statuses. The zero value is empty.
type Statuses [1000]bool

// status is one, whose order is that of the text.
var status = regexp.MustCompile(`^[1-9][0-9]{2}$`)

// ParseStatuses parses a list of statuses, classes and ranges, such as 429,5xx or 500-503. The empty string is the empty
// set.
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

// Common returns a status that is in both sets, 0 if there is none.
func (s *Statuses) Common(o *Statuses) (status int) {
	for i := range s {
		if s[i] && o[i] {
			return i
		}
	}
	return 0
}
