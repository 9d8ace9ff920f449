package push

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
)

// validLabel also allows names with dots, as OpenTelemetry's attributes have. Not all servers accept them as labels.
var validLabel = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.]*$`)

// CheckLabels returns all errors in the labels for all series. job and instance are required, and resource is reserved.
func CheckLabels(labels map[string]string) error {
	var errs []error
	wrong := func(is bool, format string, args ...any) {
		if is {
			err := fmt.Errorf(format, args...)
			errs = append(errs, &collector.OptionError{Package: "push", Field: "Labels", Err: err})
		}
	}
	for _, name := range []string{"job", "instance"} {
		_, ok := labels[name]
		wrong(!ok, "no %s; without job and instance two processes would write to the same series", name)
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		value := labels[name]
		wrong(!validLabel.MatchString(name) || strings.HasPrefix(name, "__"),
			"%q: must have only letters, digits, _ and ., and must not begin with a digit, . or __", name)
		wrong(name == "resource", "%q is reserved for resources", name)
		wrong(value == "", "%q is empty", name)
		wrong(len(value) > collector.MaxNameLength, "%q is longer than %d bytes", name, collector.MaxNameLength)
	}
	return errors.Join(errs...)
}

// Labelled is a Sink that adds labels to each series. If a series has a label with the same name, that label gets the
// prefix exported_.
type Labelled struct {
	seconds.Sink
	more          map[string]string
	moreNames     []string // names in more, sorted
	names, values []string // labels of the current series, sorted by name
}

// NewLabelled returns a Labelled that adds the labels in more and forwards to sink.
func NewLabelled(sink seconds.Sink, more map[string]string) *Labelled {
	return &Labelled{Sink: sink, more: more, moreNames: slices.Sorted(maps.Keys(more))}
}

// Start implements seconds.Starter, for sinks with cumulative series.
func (l *Labelled) Start(unix int64) {
	if sink, ok := l.Sink.(seconds.Starter); ok {
		sink.Start(unix)
	}
}

// Exemplars implements seconds.Exemplars, for sinks with exemplars.
func (l *Labelled) Exemplars(list []collector.Exemplar) {
	if sink, ok := l.Sink.(seconds.Exemplars); ok {
		sink.Exemplars(list)
	}
}

// Series implements seconds.Sink.
func (l *Labelled) Series(f *table.Family, names, values []string) {
	l.names, l.values = l.names[:0], l.values[:0]
	for _, name := range l.moreNames {
		l.names, l.values = append(l.names, name), append(l.values, l.more[name])
	}
	for i, name := range names {
		taken := func(name string) bool { return l.more[name] != "" || slices.Contains(l.names, name) }
		if l.more[name] != "" {
			for taken(name) || slices.Contains(names, name) {
				name = "exported_" + name
			}
		}
		at, _ := slices.BinarySearch(l.names, name)
		l.names, l.values = slices.Insert(l.names, at, name), slices.Insert(l.values, at, values[i])
	}
	l.Sink.Series(f, l.names, l.values)
}
