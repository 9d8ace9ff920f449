package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
)

// Selectors. Values stand in raw strings, in which nothing but a backtick has a meaning: how Grafana escapes them for a string in
// quotes differs with its version, and is wrong for quotes and backslashes. They are regular expressions even where there is
// one value: VictoriaMetrics does not find the end of a raw string after a single backslash. All is not escaped.
const (
	place      = "cluster=~`${cluster:regex}`,namespace=~`${namespace:regex}`"
	instance   = ",instance=~`${instance:regex}`"
	jobs       = "job=~`(${job:regex})(-seconds)?`"
	job        = place + ",job=~`${job:regex}`" + instance
	secondsJob = place + "," + jobs + instance
	many       = ",resource=~`${resources:regex}`"
	one        = ",resource=~`${resource:regex}`"
)

// A view makes expressions for the resources of one dashboard.
type view struct {
	resources string // selects them; one of the above
	by        string // in brackets, the label that sums are kept apart by; empty for none
	prefix    string // of names: "inbound_" for those of all inbound traffic
}

// total makes an expression for all inbound traffic, and where there is none, as in a worker, or some resources are chosen,
// for the sum of the resources. The choice of all resources also fits a series without that label.
func (v view) total(expr func(view) string) string {
	inbound := `count({__name__=~"windowstat_(inbound_pass_total|persecond_inbound_pass)",` + secondsJob + v.resources + "})"
	return "(" + expr(view{v.resources, v.by, "inbound_"}) + " or (" + expr(v) + ") unless on () " + inbound + ")"
}

// sum adds up what there is of the targets, and keeps apart what the view keeps apart.
func (v view) sum(expr string) string { return "sum" + v.grouping() + "(" + expr + ")" }

// max is the highest of the targets.
func (v view) max(expr string) string { return "max" + v.grouping() + "(" + expr + ")" }

// min is the lowest of the targets.
func (v view) min(expr string) string { return "min" + v.grouping() + "(" + expr + ")" }

func (v view) grouping() string {
	if v.by == "" {
		return ""
	}
	return " by (" + v.by + ") "
}

// metric selects a metric of resources from /metrics.
func (v view) metric(name string) string {
	return "windowstat_" + v.prefix + name + "{" + job + v.resources + "}"
}

// second selects a metric of /metrics/seconds.
func (v view) second(name string) string {
	return "windowstat_persecond_" + v.prefix + name + "{" + secondsJob + v.resources + "}"
}

// rate is how fast a counter of /metrics grows. Its range follows the interval of the scrapes.
func (v view) rate(counter string) string {
	return v.sum("rate(" + v.metric(counter) + "[$__rate_interval])")
}

// mean is the same over all the time that is shown.
func (v view) mean(counter string) string { return v.sum("rate(" + v.metric(counter) + "[$__range])") }

// inSecond is the sum over the targets in one second, and in no other: the range is shorter than a second, or a target
// that has gone would count on with its last one for five minutes.
func (v view) inSecond(name string) string {
	return v.sum("last_over_time(" + v.second(name) + "[999ms])")
}

// added is what came to the buckets of a histogram of /metrics/seconds within the step of a graph. They are cumulative, and have
// the times of the ends of their seconds, so the difference of two moments is exactly what was between them. That of an idle
// resource stops, and begins again before what comes next: so the lowest value is that at the beginning of the step, whose own
// moment is part of the range.
func (v view) added(buckets string) string {
	b := v.second(buckets)
	return v.sum("last_over_time(" + b + "[$__interval]) - min_over_time(" + b + "[${__interval}1ms])")
}

// peak is the highest second within a time, $__interval or $__range, of all targets together. It looks at every second,
// however long the time, so a burst is as tall at a day as at five minutes. Prometheus before 3.0 includes both ends of the time,
// and may show one in two points: Grafana has no variable for an interval less a millisecond.
func peak(inSecond, time string) string {
	return "max_over_time((" + inSecond + ")[" + time + ":1s])"
}

// ofLimit is how much of its limit a target used, of the target that used most: its highest value of something in any second, by the
// limit that was in force then. The limit is known at each scrape of /metrics, and the highest one around a second is taken,
// so that one that was changed between two scrapes is not exceeded by what came before.
func (v view) ofLimit(name, limit string) string {
	each := func(expr string) string { return "max by (instance, resource) (" + expr + ")" }
	used := each("max_over_time(" + v.second(name) + "[15s])")
	inForce := each("max_over_time(" + v.metric(limit) + "[1m] offset -20s)")
	return v.max("max_over_time((" + used + " / on (instance, resource) (" + inForce + " > 0))[$__range:15s])")
}

// near is a limit, where what it limits comes to a quarter of it in the time that is shown: a limit far above would
// make everything else a line at the bottom of the graph.
func near(limit, highest string) string { return limit + " < 4 * " + highest }

// named gives those without a value of a label one that can be read.
func named(expr, label, none string) string {
	return "label_replace(" + expr + `, "` + label + `", "` + none + `", "` + label + `", "")`
}

// ratio divides, and has no value where there is nothing to divide by: an idle resource has no share of errors.
func ratio(part, whole string) string { return "(" + part + ") / ((" + whole + ") > 0)" }

// busiest keeps the ten resources of which a counter grew most, over all the time that is shown: the same ones in the whole
// graph.
func (v view) busiest(expr, counter string) string {
	return ten(expr, v.sum("rate("+v.metric(counter)+"[$__range] @ end())"))
}

// highest keeps the ten resources that had most of something in any second of any target.
func (v view) highest(expr, name string) string {
	return ten(expr, v.max("max_over_time("+v.second(name)+"[$__range] @ end())"))
}

// ten keeps the resources that have most of something else.
func ten(expr, most string) string { return "(" + expr + ") and on (resource) topk(10, " + most + ")" }

// query is an expression in a panel.
type query struct {
	legend, expr string
	instant      bool // one value, at the end of the time that is shown
	heatmap      bool
}

// target makes the query for a panel. It has no interval: Grafana since 10.3 takes that for the interval of the scrapes, and
// $__rate_interval would be too short for them; Grafana 13 takes it for the step, however long the time. The panel has one.
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
	if q.heatmap {
		t.Format(prometheus.PromQueryFormatHeatmap)
	}
	return t
}
