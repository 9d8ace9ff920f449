package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/internal/redact"
)

// ErrSeveralInstances is the error if the labels select the series of several instances, and the runs do not show which
// of them is meant.
var ErrSeveralInstances = errors.New("the labels do not select one instance")

// selector returns the PromQL selector of metrics with labels; without metrics it selects all. It quotes
// a name with dots, such as service.name, which VictoriaMetrics keeps from an OTLP push.
func selector(metrics []string, labels map[string]string) string {
	var all []string
	if len(metrics) > 0 {
		all = append(all, fmt.Sprintf("__name__=~%q", strings.Join(metrics, "|")))
	}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		value := strconv.Quote(labels[name])
		if strings.Contains(name, ".") {
			name = strconv.Quote(name)
		}
		all = append(all, name+"="+value)
	}
	return "{" + strings.Join(all, ",") + "}"
}

// difference returns the labels of other that differ from own, such as instance=pod-2. Reports use it as the name of
// another instance. A label that other lacks has no value, such as cluster=. The result is empty for equal labels.
func difference(own, other map[string]string) string {
	var all []string
	for _, labels := range []map[string]string{own, other} {
		for name := range labels {
			if own[name] != other[name] {
				all = append(all, name+"="+other[name])
			}
		}
	}
	slices.Sort(all)
	return redact.Line(strings.Join(slices.Compact(all), ","))
}

// severalError returns an [ErrSeveralInstances] that names the labels in which two instances differ.
func severalError(a, b map[string]string) error {
	return fmt.Errorf("%w: found %s and %s", ErrSeveralInstances, difference(b, a), difference(a, b))
}

// instance returns the labels of the instance, given the series that Options.Labels select:
//
//   - If all series have the same labels, it returns these.
//   - Otherwise it queries the labels that have the run of the last second of the gap. If these are the labels of a
//     single instance, and a selector can exclude the series of the others, it returns them. So one set of labels
//     selects each instance of a fleet by its log.
//   - Otherwise it returns [ErrSeveralInstances].
func (c *comparison) instance(ctx context.Context, series []stored) (map[string]string, error) {
	labels := series[0].labels
	differs := func(x stored) bool { return !maps.Equal(labels, x.labels) }
	i := slices.IndexFunc(series, differs)
	if i < 0 {
		return labels, nil
	}
	several := severalError(labels, series[i].labels)
	from, to := c.gap.From.Unix(), c.gap.To.Unix()
	last := c.runs.ID(to)
	if last == 0 {
		return labels, several
	}
	run := selector([]string{table.Run(c.gap.namespace()).Name}, c.report.Labels)
	query := fmt.Sprintf("last_over_time(%s%s) == %d", run, rangeSelector(from, to), last)
	found, err := c.query(ctx, query, to, "vector")
	if err != nil || len(found) != 1 {
		return labels, cmp.Or(err, several)
	}
	labels = found[0].labels
	// A selector of these labels also matches a series that has all of them and further labels.
	if slices.ContainsFunc(series, func(x stored) bool { return matches(labels, x.labels) && differs(x) }) {
		return labels, several
	}
	return labels, nil
}

// matches reports whether labels contains all labels of want, with equal values.
func matches(want, labels map[string]string) bool {
	for name, value := range want {
		if labels[name] != value {
			return false
		}
	}
	return true
}
