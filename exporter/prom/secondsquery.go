package prom

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
)

// query holds the parameters of a request to the per-second endpoint.
type query struct {
	seconds.Selection
	cursor string
	window int64 // in seconds; 0 if not specified
	ranges bool  // text histogram with vmrange buckets
}

const (
	// defaultWindow is the window, in seconds, without the parameters cursor and window.
	defaultWindow = 60
	// maxSelected is the maximum number of metrics, and of resources, in a request.
	maxSelected = 100
)

var (
	parameters  = []string{"cursor", "window", "metric", "resource", "histogram"}
	validCursor = regexp.MustCompile(`^[a-zA-Z0-9_.:-]{1,64}$`)
)

// parse parses the parameters. The error names every invalid one.
func (s *Seconds) parse(raw string) (q query, err error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return q, fmt.Errorf("malformed query: %w", err)
	}
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	once := func(name string) (string, bool) {
		v, ok := values[name]
		if len(v) > 1 {
			wrong("%s is given %d times", name, len(v))
		}
		return values.Get(name), ok
	}
	cursor, hasCursor := once("cursor")
	if q.cursor = cursor; hasCursor && !validCursor.MatchString(cursor) {
		wrong("cursor is %.70q; 1 to 64 letters, digits and _.:- are allowed", cursor)
	}
	if window, ok := once("window"); ok {
		d, err := time.ParseDuration(window)
		history := s.source.History()
		if err != nil || d < time.Second || d > history || d%time.Second != 0 {
			wrong("window is %.70q; whole seconds from 1s to %v are allowed", window, history)
		}
		if hasCursor {
			wrong("cursor and window exclude each other")
		}
		q.window = int64(d / time.Second)
	}
	switch histogram, ok := once("histogram"); {
	case histogram == "classic":
		q.Histogram = seconds.Cumulative
	case histogram == "native":
		q.Histogram = seconds.Single
	case histogram == "vmrange":
		q.Histogram, q.ranges = seconds.Single, true
	case ok:
		wrong("histogram is %.70q; classic, native and vmrange are allowed", histogram)
	}
	for _, name := range values["metric"] {
		full := s.fullName(name)
		if full == "" {
			wrong("unknown metric %.70q", name)
		}
		q.Metrics = append(q.Metrics, full)
	}
	for _, name := range values["resource"] {
		if len(name) > collector.MaxNameLength {
			wrong("resource %.70q is longer than %d bytes", name, collector.MaxNameLength)
		}
		q.Resources = append(q.Resources, name)
	}
	for name, list := range map[string]*[]string{"metric": &q.Metrics, "resource": &q.Resources} {
		if n := len(*list); n > maxSelected {
			errs = []error{fmt.Errorf("%s is given %d times; at most %d are allowed", name, n, maxSelected)}
		}
		// Sort the names: requests with the same names in any order share a cursor.
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}
	for name := range values {
		if !slices.Contains(parameters, name) {
			wrong("unknown parameter %.70q; allowed are %q", name, parameters)
		}
	}
	return q, errors.Join(errs...)
}

// fullName returns the full name of a metric. The namespace may be omitted in name. The result is empty if no such
// metric exists.
func (s *Seconds) fullName(name string) string {
	for _, full := range []string{name, s.opts.Namespace + "_" + name} {
		for _, stream := range s.streams {
			if stream.Knows(full) {
				return full
			}
		}
	}
	return ""
}

// native reports whether the page must be protobuf.
func (q *query) native() bool { return q.Histogram == seconds.Single && !q.ranges }

// filter returns a short hash of the selection, or "" if everything is selected. Requests with different hashes have
// different cursors.
func (q *query) filter() string {
	if len(q.Metrics)+len(q.Resources) == 0 && q.Histogram == seconds.None {
		return ""
	}
	all := fmt.Sprintf("%q %q %d", q.Metrics, q.Resources, q.Histogram)
	if q.ranges {
		all += " vmrange"
	}
	// A hash bounds the size of the state file and of the map of cursors. Eight bytes suffice, because a collision
	// affects only cursors of the same scraper.
	sum := sha256.Sum256([]byte(all))
	return hex.EncodeToString(sum[:8])
}
