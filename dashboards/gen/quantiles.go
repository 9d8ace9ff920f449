package main

import (
	"fmt"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/stat"
)

// quantile returns a quantile of the response times over a time range, accurate to one bucket of 9%. It uses the native
// histograms of /metrics or the vmrange histograms of /metrics/seconds, and limits the result to the fastest and the
// slowest call in the range. It has no value if the server stores neither: classic buckets are too wide to interpolate,
// see [view.atMost].
func (v view) quantile(q float64, time string) string {
	expr := v.fine(q, time)
	capped := v.min(either(expr, v.slowest(time)))
	return "(" + v.max(either(capped, v.fastest(time))) + ") and on (" + v.by + ") (" + expr + ")"
}

// fine returns the quantile computed from the buckets.
func (v view) fine(q float64, time string) string {
	native := v.sum("rate(" + v.metric("rt_seconds") + "[" + time + "])")
	// The buckets count single seconds: the first value of a new cumulative counter would be lost.
	ranges := v.with("vmrange").sum("sum_over_time(" + v.second("rt_distribution_seconds_bucket") + "[" + time + "])")
	return fmt.Sprintf("(histogram_quantile(%g, %s) or histogram_quantile(%g, %s)) >= 0", q, native, q, ranges) // NaN without calls
}

// atLeast and atMost return the bounds of the classic bucket that contains a quantile. They have no value if the server
// stores finer histograms. The bucket without an upper bound ends at the slowest call. The bounds are never beyond the
// slowest and the fastest call.
func (v view) atLeast(q float64, time string) string {
	low, _ := v.bounds(q, time)
	return "(" + v.max(either(low, v.fastest(time))) + ") and on (" + v.by + ") (" + low + ")" + v.unlessFine(q, time)
}

func (v view) atMost(q float64, time string) string {
	low, high := v.bounds(q, time)
	return "(" + v.min(either("("+high+") > ("+low+")", v.slowest(time))) + ") and on (" + v.by + ") (" + low + ")" + v.unlessFine(q, time)
}

func (v view) unlessFine(q float64, time string) string {
	return " unless on (" + v.by + ") (" + v.fine(q, time) + ")"
}

// bounds returns the bounds of the bucket that contains a quantile. It builds a histogram with the value 1 in this
// bucket and 0 in all others; its quantiles are the bounds. If the bucket has no upper bound, both results are the
// highest bound.
func (v view) bounds(q float64, time string) (low, high string) {
	buckets := v.with("le").sum("rate(" + v.metric("rt_seconds_bucket") + "[" + time + "])")
	all := view{v.resources + `,le="+Inf"`, v.by, v.prefix}
	rank := fmt.Sprintf("%g * %s > 0", q, all.sum("rate("+all.metric("rt_seconds_bucket")+"["+time+"])"))
	bucket := buckets + " >= bool ignoring (le) group_left () (" + rank + ")"
	return "histogram_quantile(1e-9, " + bucket + ")", "histogram_quantile(1, " + bucket + ")"
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

// quantiles returns the queries of a quantile for a graph. The bound of a classic bucket is a separate line with its
// own legend.
func (v view) quantiles(legend string, q float64, of scope) []query {
	const time = "$__rate_interval"
	return []query{
		{legend: legend, expr: of(v, func(v view) string { return v.quantile(q, time) })},
		{legend: legend + ", at most", expr: of(v, func(v view) string { return v.atMost(q, time) })},
	}
}

// p99 returns the panel with the 99% quantile of a view.
func p99(id uint32, v view, of scope) *stat.PanelBuilder {
	const time = "$__range"
	return figures(head{id, "p99", duration, "Response time that 99% of the calls did not exceed, over the time shown, to 9%. Where the server has only classic histograms, the bounds that it is between.", noQuantilesFigure},
		query{legend: "p99", expr: of(v, func(v view) string { return v.quantile(0.99, time) })},
		query{legend: "at least", expr: of(v, func(v view) string { return v.atLeast(0.99, time) })},
		query{legend: "at most", expr: of(v, func(v view) string { return v.atMost(0.99, time) })},
	)
}
