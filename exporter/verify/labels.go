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

// ErrSeveral is the error for labels that do not select one instance: the database has several series of one resource, or series
// with other labels beside them.
var ErrSeveral = errors.New("the labels do not select one instance")

// selector selects metrics, all if there are none, with labels, in PromQL. A name with dots, such as
// service.name in a VictoriaMetrics that was pushed to by OTLP, is quoted.
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

// difference tells labels from those of another instance: their values of the labels that differ.
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

// severalError is the error for two instances.
func severalError(a, b map[string]string) error {
	return fmt.Errorf("%w: there are %s and %s", ErrSeveral, difference(b, a), difference(a, b))
}

// instance returns the labels of the instance. If there are several, it is the one that has the last run of the log.
func (c *comparison) instance(ctx context.Context, series []stored) (map[string]string, error) {
	one := series[0].labels
	differs := func(x stored) bool { return !maps.Equal(one, x.labels) }
	i := slices.IndexFunc(series, differs)
	if i < 0 {
		return one, nil
	}
	several := severalError(one, series[i].labels)
	from, to := c.gap.From.Unix(), c.gap.To.Unix()
	last := c.runs.ID(to)
	if last == 0 {
		return one, several
	}
	run := selector([]string{table.Run(c.gap.namespace()).Name}, c.report.Labels)
	have, err := c.query(ctx, fmt.Sprintf("last_over_time(%s%s) == %d", run, window(from, to), last), to, "vector")
	if err != nil || len(have) != 1 {
		return one, cmp.Or(err, several)
	}
	one = have[0].labels
	if slices.ContainsFunc(series, func(x stored) bool { return matches(one, x.labels) && differs(x) }) {
		return one, several // a selector cannot tell them apart
	}
	return one, nil
}

// matches reports whether labels have all that are wanted.
func matches(want, labels map[string]string) bool {
	for name, value := range want {
		if labels[name] != value {
			return false
		}
	}
	return true
}
