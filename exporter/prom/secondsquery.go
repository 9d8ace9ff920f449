package prom

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// query is what a request asks a page of seconds for.
type query struct {
	cursor          string
	window          int64 // seconds
	hasWindow       bool
	metrics         []*secondMetric
	names           []string // of the metrics, if they were chosen
	resources       []string // none is all
	classic, native bool     // histogram
}

// times reports whether the answer needs the response times of single seconds.
func (q query) times() bool {
	return q.classic || q.native || slices.ContainsFunc(q.metrics, func(m *secondMetric) bool { return m.RT != nil })
}

const (
	// defaultWindow is how many seconds a request gets that does not say.
	defaultWindow = 60
	// maxChosen is how many metrics, or resources, a request may name.
	maxChosen = 100
)

var (
	parameters  = []string{"cursor", "window", "metric", "resource", "histogram"}
	validCursor = regexp.MustCompile(`^[a-zA-Z0-9_.:-]{1,64}$`)
)

// parse reads the parameters. The error names everything that is wrong with them.
func (s *Seconds) parse(raw string) (q query, err error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return q, fmt.Errorf("the parameters cannot be read: %w", err)
	}
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	once := func(name string) (string, bool) {
		v, there := values[name]
		if len(v) > 1 {
			wrong("%s is there %d times", name, len(v))
		}
		return values.Get(name), there
	}
	cursor, hasCursor := once("cursor")
	if q.cursor = cursor; hasCursor && !validCursor.MatchString(cursor) {
		wrong("cursor is %.70q; 1 to 64 letters, digits and _.:- are allowed", cursor)
	}
	q.window = defaultWindow
	var window string
	if window, q.hasWindow = once("window"); q.hasWindow {
		d, err := time.ParseDuration(window)
		history := s.stats.History()
		if err != nil || d < time.Second || d > history || d%time.Second != 0 {
			wrong("window is %.70q; whole seconds from 1s to %v are allowed", window, history)
		}
		if hasCursor {
			wrong("cursor and window exclude each other")
		}
		q.window = int64(d / time.Second)
	}
	switch histogram, there := once("histogram"); {
	case histogram == "classic":
		q.classic = true
	case histogram == "native":
		q.native = true
	case there:
		wrong("histogram is %.70q; classic and native are allowed", histogram)
	}
	errs = append(errs, s.parseChoice(&q, values))
	for name := range values {
		if !slices.Contains(parameters, name) {
			wrong("there is no parameter %.70q; there are %q", name, parameters)
		}
	}
	return q, errors.Join(errs...)
}

// parseChoice reads which metrics and resources are asked for.
func (s *Seconds) parseChoice(q *query, values url.Values) error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, name := range []string{"metric", "resource"} {
		if n := len(values[name]); n > maxChosen {
			wrong("%s is there %d times; at most %d are allowed", name, n, maxChosen)
			return errors.Join(errs...)
		}
	}
	q.metrics = s.metrics
	if names := values["metric"]; len(names) > 0 {
		q.metrics = nil
		for _, name := range names {
			i := slices.IndexFunc(s.metrics, func(m *secondMetric) bool { return m.name == name || m.Second.Name == name })
			if i < 0 {
				wrong("there is no metric %.70q", name)
			} else if !slices.Contains(q.metrics, s.metrics[i]) {
				q.metrics = append(q.metrics, s.metrics[i])
				q.names = append(q.names, s.metrics[i].name)
			}
		}
		slices.Sort(q.names)
	}
	for _, name := range values["resource"] {
		if len(name) > collector.MaxNameLength {
			wrong("resource %.70q is longer than the %d bytes that a name has at most", name, collector.MaxNameLength)
		}
		q.resources = append(q.resources, name)
	}
	slices.Sort(q.resources)
	q.resources = slices.Compact(q.resources)
	return errors.Join(errs...)
}

// filters tells apart what the readers of one name ask for.
func (q query) filters() string {
	return fmt.Sprintf("%q %q %t %t", q.names, q.resources, q.classic, q.native)
}

// wants reports whether a resource was asked for.
func (q query) wants(resource string) bool {
	return len(q.resources) == 0 || slices.Contains(q.resources, resource)
}

// choose is those of the resources that were asked for.
func (q query) choose(all []*collector.Resource) []*collector.Resource {
	if len(q.resources) == 0 {
		return all
	}
	var list []*collector.Resource
	for _, r := range all {
		if q.wants(r.Name()) {
			list = append(list, r)
		}
	}
	return list
}
