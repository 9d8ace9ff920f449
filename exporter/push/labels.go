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

// Names with dots are those of OpenTelemetry's attributes, which not all servers take as labels.
var validLabel = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.]*$`)

// CheckLabels returns everything that is wrong with labels for all series: job and instance are required, resource is reserved.
func CheckLabels(labels map[string]string) error {
	var errs []error
	wrong := func(is bool, format string, args ...any) {
		if is {
			errs = append(errs, &collector.OptionError{Package: "push", Field: "Labels", Err: fmt.Errorf(format, args...)})
		}
	}
	for _, name := range []string{"job", "instance"} {
		_, ok := labels[name]
		wrong(!ok, "there is no %s: without job and instance two processes would write to the same series", name)
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		value := labels[name]
		wrong(!validLabel.MatchString(name) || strings.HasPrefix(name, "__"), "%q: letters, digits, _ and . are allowed, no digit or . in front, and not __", name)
		wrong(name == "resource", "%q is reserved for resources", name)
		wrong(value == "", "%q is empty", name)
		wrong(len(value) > collector.MaxNameLength, "%q is longer than %d bytes", name, collector.MaxNameLength)
	}
	return errors.Join(errs...)
}

// Labelled is a Sink that adds labels to each series.
type Labelled struct {
	seconds.Sink
	labels labels
}

// NewLabelled makes a Labelled that adds the labels of more.
func NewLabelled(sink seconds.Sink, more map[string]string) *Labelled {
	return &Labelled{sink, newLabels(more)}
}

// Series implements seconds.Sink.
func (l *Labelled) Series(f *table.Family, names, values []string) {
	l.labels.merge(names, values)
	l.Sink.Series(f, l.labels.names, l.labels.values)
}

// labels adds labels to those of each series.
type labels struct {
	more          map[string]string
	own           []string // names of more, sorted
	names, values []string // of the merged labels, sorted by name
}

func newLabels(more map[string]string) labels {
	return labels{more: more, own: slices.Sorted(maps.Keys(more))}
}

// merge sets names and values to the labels of a series and the added ones.
func (l *labels) merge(names, values []string) {
	l.names, l.values = l.names[:0], l.values[:0]
	for _, name := range l.own {
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
}
