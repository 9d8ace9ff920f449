package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// Selectors. The values of variables are in raw strings, where only a backtick is special. Grafana's escaping for
// quoted strings differs between versions, and is wrong for quotes and backslashes. The matchers are regular
// expressions even for a single value, because VictoriaMetrics does not find the end of a raw string after a single
// backslash. Grafana does not escape All.
const (
	place      = "cluster=~`${cluster:regex}`,namespace=~`${namespace:regex}`"
	instance   = ",instance=~`${instance:regex}`"
	jobs       = "job=~`(${job:regex})(-seconds)?`"
	totals     = place + ",job=~`${job:regex}`"
	perSeconds = place + "," + jobs
	job        = totals + instance
	secondsJob = perSeconds + instance
	many       = ",resource=~`${resources:regex}`"
	one        = ",resource=~`${resource:regex}`"
)

// A view makes expressions for the resources of one dashboard. An expression repeats the selectors of thirty resources
// and forty targets three times at most, because VictoriaMetrics refuses queries of more than 16 KiB.
type view struct {
	resources string // their selector, one of the constants above
	by        string // label that groups sums, or empty
	prefix    string // of metric names: totalPrefix for all inbound traffic
	anywhere  bool   // also of targets that are not selected
}

// totalPrefix is the variable for the prefix of the metrics of a total: inbound_, or nothing if there is no inbound
// traffic, as in a worker, or if some resources are selected. See [board.withTotal].
const totalPrefix = "${total:raw}"

// total makes an expression for all inbound traffic, or for the sum of the resources.
func (v view) total(expr func(view) string) string {
	v.prefix = totalPrefix
	return expr(v)
}

// everywhere returns a view of the same resources on all targets of the jobs. Its values must be joined by resource
// with values of selected targets.
func (v view) everywhere() view {
	v.anywhere = true
	return v
}

// unselected returns a view of all targets of the jobs, and also of all resources if the selection may be long. Its
// values must be joined by instance and resource with selected ones.
func (v view) unselected() view {
	if v.resources == many {
		v.resources = ""
	}
	return v.everywhere()
}

// sum adds the values of the targets, grouped by v.by.
func (v view) sum(expr string) string { return "sum" + v.grouping() + "(" + expr + ")" }

// max returns the highest value of the targets, grouped by v.by.
func (v view) max(expr string) string { return "max" + v.grouping() + "(" + expr + ")" }

// min returns the lowest value of the targets, grouped by v.by.
func (v view) min(expr string) string { return "min" + v.grouping() + "(" + expr + ")" }

func (v view) grouping() string {
	if v.by == "" {
		return ""
	}
	return " by (" + v.by + ") "
}

// metric selects a metric of resources from /metrics.
func (v view) metric(name string) string {
	return "windowstat_" + v.prefix + name + "{" + v.selector(totals) + "}"
}

// second selects a metric of /metrics/seconds.
func (v view) second(name string) string {
	return "windowstat_persecond_" + v.prefix + name + "{" + v.selector(perSeconds) + "}"
}

// selector adds the selectors of targets and resources to the selector of a job.
func (v view) selector(job string) string {
	if v.anywhere {
		return job + v.resources
	}
	return job + instance + v.resources
}

// rate returns the growth per second of a counter of /metrics. Its range follows the scrape interval.
func (v view) rate(counter string) string {
	return v.sum("rate(" + v.metric(counter) + "[$__rate_interval])")
}

// mean returns the growth per second over the whole time range of the dashboard.
func (v view) mean(counter string) string { return v.sum("rate(" + v.metric(counter) + "[$__range])") }

// inSecond returns the sum over the targets in exactly one second. The range is shorter than a second; with the default
// lookback, a target that disappeared would count with its last second for five minutes.
func (v view) inSecond(name string) string {
	return v.sum("last_over_time(" + v.second(name) + "[999ms])")
}

// added returns the growth of the per-second histogram buckets within a step of a graph. The buckets are cumulative,
// and their timestamps are the ends of their seconds, so the difference of two instants is exact. The series of an idle
// resource pauses, and resumes before the next increase. The lowest value in the step is therefore the value at its
// beginning; the range includes that instant.
func (v view) added(buckets string) string {
	b := v.second(buckets)
	return v.sum("last_over_time(" + b + "[$__interval]) - min_over_time(" + b + "[${__interval}1ms])")
}

// peak returns the highest second, over all targets together, within a time range ($__interval or $__range). It reads
// every second of any range, so a burst has the same height over a day as over five minutes. Prometheus before 3.0
// includes both ends of a range, and may show a second in two points: Grafana has no variable for an interval less a
// millisecond.
func peak(inSecond, time string) string {
	return "max_over_time((" + inSecond + ")[" + time + ":1s])"
}

// ofLimit returns the highest use of a limit, by the target that used most of it: the highest value of name in any
// second, divided by the limit then in force. The limit is sampled at each scrape of /metrics. ofLimit takes the
// highest limit around a second, so calls before a change never appear to exceed a limit that was lowered between two
// scrapes.
func (v view) ofLimit(name, limit string) string {
	each := func(expr string) string { return "max by (instance, resource) (" + expr + ")" }
	used := each("max_over_time(" + v.second(name) + "[15s])")
	inForce := each("max_over_time(" + v.metric(limit) + "[1m] offset -20s)")
	return v.max("max_over_time((" + used + " / on (instance, resource) (" + inForce + " > 0))[$__range:15s])")
}

// near returns the limit if the limited value reaches a quarter of it in the time range. A much higher limit would
// flatten all other lines of the graph.
func near(limit, highest string) string { return limit + " < 4 * " + highest }

// named sets the label to the text none in series without the label.
func named(expr, label, none string) string {
	return "label_replace(" + expr + `, "` + label + `", "` + none + `", "` + label + `", "")`
}

// ratio divides part by whole. The result is absent if whole is 0: an idle resource has no error share.
func ratio(part, whole string) string { return "(" + part + ") / ((" + whole + ") > 0)" }

// busiest keeps the ten resources with the highest growth of a counter over the whole time range, so the graph shows
// the same ten resources throughout.
func (v view) busiest(expr, counter string) string {
	return ten(expr, v.sum("rate("+v.metric(counter)+"[$__range] @ end())"))
}

// highest keeps the ten resources with the highest value in any second of any target.
func (v view) highest(expr, name string) string {
	return ten(expr, v.max("max_over_time("+v.second(name)+"[$__range] @ end())"))
}

// ten keeps the ten resources with the highest values of most.
func ten(expr, most string) string { return "(" + expr + ") and on (resource) topk(10, " + most + ")" }

// query is an expression in a panel.
type query struct {
	legend, expr string
	instant      bool // a single value, at the end of the time range
	heatmap      bool
	traces       bool // exemplars of the series, instead of values
}

// traces returns a query for the exemplars of response times, the calls with a trace ID, as points of a graph. Grafana
// asks Prometheus for the exemplars of all series that an expression selects. The expression has no values, so it adds
// no lines, and it finds the exemplars of both kinds of histogram. The data source has the links to the traces.
func (v view) traces() query {
	expr := `count({__name__=~"windowstat_rt_seconds(_bucket)?",` + v.selector(totals) + `}) < 0`
	return query{legend: "traces", expr: expr, traces: true}
}

// target makes the query for a panel. The query has no interval; the panel has one. Grafana since 10.3 would use an
// interval of the query as the scrape interval, and $__rate_interval would be too short. Grafana 13 would use it as the
// step of any time range.
func (q query) target(ref int) *prometheus.DataqueryBuilder {
	t := prometheus.NewDataqueryBuilder().
		RefId(string(rune('A' + ref))).
		Datasource(source).
		EditorMode(prometheus.QueryEditorModeCode).
		Expr(q.expr).
		LegendFormat(q.legend)
	if q.instant {
		t.Instant()
	} else {
		t.Range()
	}
	if q.traces {
		t.Exemplar(true)
	}
	if q.heatmap {
		t.Format(prometheus.PromQueryFormatHeatmap)
	}
	return t
}
