package main

import (
	"fmt"
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/stat"
)

// quantile is a quantile of the response times over a time, to one bucket of 9%, from the native histograms of /metrics or those by
// vmrange of /metrics/seconds, and between the fastest and the slowest call of that time. Where a server has neither there is none:
// classic buckets are too wide to interpolate, see [view.atMost].
func (v view) quantile(q float64, time string) string {
	expr := v.fine(q, time)
	capped := v.min(either(expr, v.slowest(time)))
	return "(" + v.max(either(capped, v.fastest(time))) + ") and on (" + v.by + ") (" + expr + ")"
}

// fine is the quantile that the buckets give.
func (v view) fine(q float64, time string) string {
	native := v.sum("rate(" + v.metric("rt_seconds") + "[" + time + "])")
	// Of single seconds: a counter that appears with its bucket would lose what it begins with.
	ranges := v.with("vmrange").sum("sum_over_time(" + v.second("rt_distribution_seconds_bucket") + "[" + time + "])")
	return fmt.Sprintf("(histogram_quantile(%g, %s) or histogram_quantile(%g, %s)) >= 0", q, native, q, ranges) // NaN without calls
}

// atLeast and atMost are the bounds of the classic bucket that a quantile is in, where a server has only those; the bucket without an
// upper bound ends with the slowest call, and no bound is beyond the slowest and the fastest call.
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

// bounds are those of the bucket that a quantile is in. A histogram in which nothing but this bucket has something, 1, begins and ends
// with them. Both are the highest bound where the bucket has no upper one.
func (v view) bounds(q float64, time string) (low, high string) {
	buckets := v.with("le").sum("rate(" + v.metric("rt_seconds_bucket") + "[" + time + "])")
	all := view{v.resources + `,le="+Inf"`, v.by, v.prefix}
	rank := fmt.Sprintf("%g * %s > 0", q, all.sum("rate("+all.metric("rt_seconds_bucket")+"["+time+"])"))
	bucket := buckets + " >= bool ignoring (le) group_left () (" + rank + ")"
	return "histogram_quantile(1e-9, " + bucket + ")", "histogram_quantile(1, " + bucket + ")"
}

// slowest and fastest are the longest and the shortest response time.
func (v view) slowest(time string) string {
	return v.max("max_over_time(" + v.second("rt_max_seconds") + "[" + time + "])")
}

func (v view) fastest(time string) string {
	return v.min("min_over_time(" + v.second("rt_min_seconds") + "[" + time + "])")
}

// with keeps sums apart by one more label.
func (v view) with(label string) view {
	v.by = strings.TrimPrefix(v.by+","+label, ",")
	return v
}

// either has the values of both expressions, which have the same labels: something to take the highest or the lowest of.
func either(a, b string) string {
	return `label_replace(` + a + `, "of", "a", "", "") or label_replace(` + b + `, "of", "b", "", "")`
}

// A scope makes an expression for some of what a view has, such as [view.total].
type scope func(v view, expr func(view) string) string

// quantiles are the queries of a quantile for a graph: a line of its own says where it is a bound of a classic bucket.
func (v view) quantiles(legend string, q float64, of scope) []query {
	const time = "$__rate_interval"
	return []query{
		{legend: legend, expr: of(v, func(v view) string { return v.quantile(q, time) })},
		{legend: legend + ", at most", expr: of(v, func(v view) string { return v.atMost(q, time) })},
	}
}

// p99 is the figure of a view.
func p99(id uint32, v view, of scope) *stat.PanelBuilder {
	const time = "$__range"
	return figures(head{id, "p99", duration, "Response time that 99% of the calls did not exceed, over the time shown, to 9%. Where the server has only classic histograms, the bounds that it is between."},
		query{legend: "p99", expr: of(v, func(v view) string { return v.quantile(0.99, time) })},
		query{legend: "at least", expr: of(v, func(v view) string { return v.atLeast(0.99, time) })},
		query{legend: "at most", expr: of(v, func(v view) string { return v.atMost(0.99, time) })},
	)
}
