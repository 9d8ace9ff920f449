package main

import (
	"fmt"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/stat"
)

// A fine histogram makes the expression of a quantile over a time range from buckets of 9%. The expression has no value
// if the server does not store such buckets: classic buckets are too wide to interpolate, see [view.atMost].
type fine func(v view, q float64, time string) string

// fines lists the fine histograms. Each histogram has a separate query, because a query of both would be too long.
var fines = []fine{native, vmrange}

// native uses the native histograms of /metrics.
func native(v view, q float64, time string) string {
	return fmt.Sprintf(
		"histogram_quantile(%g, %s) >= 0",
		q,
		v.sum("rate("+v.metric("rt_seconds")+"["+time+"])"),
	) // NaN without calls
}

// vmrange uses the histograms of /metrics/seconds in VictoriaMetrics. The buckets count single seconds: the first value
// of a new cumulative counter would be lost.
func vmrange(v view, q float64, time string) string {
	buckets := v.with("vmrange").sum("sum_over_time(" + v.second("rt_distribution_seconds_bucket") + "[" + time + "])")
	return fmt.Sprintf("histogram_quantile(%g, %s) >= 0", q, buckets)
}

// quantile limits a quantile to the fastest and the slowest call in the time range.
func (v view) quantile(of fine, q float64, time string) string {
	expr := "(" + of(v, q, time) + ")"
	if v.by == "" {
		return "clamp(" + expr + ", scalar(" + v.fastest(
			time,
		) + " or vector(0)), scalar(" + v.slowest(
			time,
		) + " or vector(Inf)))"
	}
	capped := v.min(either(expr, v.slowest(time)))
	return "(" + v.max(
		either(capped, v.fastest(time)),
	) + ") and on (" + v.by + ") (" + of(v.everywhere(), q, time) + ")"
}

// coarse is a variable in the names of metrics. If the server stores fine histograms, its value makes a name that no
// metric has. See [board.withCoarse].
const coarse = "${fine:raw}"

// atLeast and atMost return the bounds of the classic bucket that contains a quantile. They have no value if the server
// stores finer histograms. The bucket without an upper bound ends at the slowest call. The bounds are never beyond the
// slowest and the fastest call; without buckets these are the bounds.
func (v view) atLeast(q float64, time string) string {
	low := "histogram_quantile(1e-9, " + v.bucket(q, time) + ")"
	return v.max(either(low, v.min("min_over_time("+v.second("rt_min_seconds"+coarse)+"["+time+"])")))
}

func (v view) atMost(q float64, time string) string {
	// The quantile of the last bucket would be its lower bound, so the bucket gets an upper bound.
	const unbounded = "1e9"
	last := v.unselected()
	last.resources += `,le="+Inf"`
	high := `histogram_quantile(1, label_replace(` + v.bucket(
		q,
		time,
	) + `, "le", "` + unbounded + `", "le", "\\+Inf") or ` +
		`label_replace(` + last.sum(
		last.metric("rt_seconds"+coarse+"_bucket"),
	) + ` ^ 0, "le", "+Inf", "", ""))`
	return "(" + v.min(
		either(high, v.max("max_over_time("+v.second("rt_max_seconds"+coarse)+"["+time+"])")),
	) + ") < " + unbounded
}

// bucket returns a histogram with the value 1 in the bucket that contains a quantile and 0 in all others. Its quantiles
// are the bounds of the bucket.
func (v view) bucket(q float64, time string) string {
	const name = "rt_seconds" + coarse + "_bucket"
	buckets := v.with("le").sum("rate(" + v.metric(name) + "[" + time + "])")
	all := v
	if v.by != "" {
		all.resources = "" // the buckets select
	}
	all.resources += `,le="+Inf"`
	rank := fmt.Sprintf("%g * %s > 0", q, all.sum("rate("+all.metric(name)+"["+time+"])"))
	return buckets + " >= bool ignoring (le) group_left () (" + rank + ")"
}

// slowest and fastest return the longest and the shortest response time.
func (v view) slowest(time string) string {
	return v.max("max_over_time(" + v.second("rt_max_seconds") + "[" + time + "])")
}

func (v view) fastest(time string) string {
	return v.min("min_over_time(" + v.second("rt_min_seconds") + "[" + time + "])")
}

// with returns a view that also groups sums by label.
func (v view) with(label string) view {
	v.by = strings.TrimPrefix(v.by+","+label, ",")
	return v
}

// either returns the values of both expressions, which must have the same labels, as the input of max or min.
func either(a, b string) string {
	return `label_replace(` + a + `, "of", "a", "", "") or label_replace(` + b + `, "of", "b", "", "")`
}

// A scope makes an expression for a part of a view; see [view.total].
type scope func(v view, expr func(view) string) string

// quantiles returns the queries of a quantile. The bound of a classic bucket is a separate line with its own legend.
func (v view) quantiles(legend string, q float64, of scope) (list []query) {
	const time = "$__rate_interval"
	for _, f := range fines {
		list = append(list, query{legend: legend, expr: of(v, func(v view) string { return v.quantile(f, q, time) })})
	}
	return append(
		list,
		query{legend: legend + ", at most", expr: of(v, func(v view) string { return v.atMost(q, time) })},
	)
}

// p99 returns the panel with the 99% quantile of a view.
func p99(id uint32, v view, of scope) *stat.PanelBuilder {
	const time = "$__range"
	var list []query
	for _, f := range fines {
		list = append(list, query{legend: "p99", expr: of(v, func(v view) string { return v.quantile(f, 0.99, time) })})
	}
	return figures(
		head{
			id,
			"p99",
			duration,
			"Response time that 99% of the calls did not exceed, over the time shown, to 9%. " +
				"Where the server has only classic histograms, the bounds that it is between.",
			noQuantilesFigure,
		},
		append(list,
			query{legend: "at least", expr: of(v, func(v view) string { return v.atLeast(0.99, time) })},
			query{legend: "at most", expr: of(v, func(v view) string { return v.atMost(0.99, time) })})...)
}
