package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// resource builds the dashboard of one resource, second by second.
func resource() (file, error) {
	b := newBoard("resource", "windowstat / Resource",
		"One resource second by second: "+
			"bursts that a rate hides, response times, refusals, calls in flight. "+
			"Ends 20 seconds ago, when every target was scraped.")
	b.withVariables()
	// The variable selects a single resource: the peak of a sum would not be the peak of any resource.
	b.WithVariable(labelValues("resource", "Resource", resources).Regex(quotable))
	b.withCoarse(one)
	b.withAnnotations()

	v := view{resources: one}
	b.resourceFigures(v)
	b.resourceCalls(v)
	b.resourceTimes(v)
	b.resourceInFlight(v)
	b.resourceTargets()
	b.resourceOrigins()
	return b.build()
}

func (b *board) resourceFigures(v view) {
	passed, refused := v.mean("pass_total"), v.mean("block_total")
	// Eight figures next to the table of two lines, and four below it.
	top := b.y
	// With a greater minimum width of the names, the age would not fit on a page of 1000 pixels.
	narrow := []dashboard.DynamicConfigValue{{Id: "custom.minWidth", Value: 100}}
	b.add(8, 6, v.hangs(50, "instance", "Target", narrow))
	figures := []cog.Builder[dashboard.Panel]{
		figure(head{
			1, "Average", perSecondUnit,
			"Calls admitted a second, on average over the time shown.",
			noTotalsFigure,
		}, passed),
		figure(head{
			2, "Busiest second", calls,
			"Calls admitted in the busiest second, of all targets together.",
			noSecondsFigure,
		},
			peak(v.inSecond("pass"), "$__range")).ColorScheme(fixed("blue")),
		figure(head{
			3, "One target's peak", calls,
			"Most calls that one target admitted in any sliding second, not aligned to the clock. " +
				"It is at least the busiest second of the target, " +
				"and may be below the busiest second of all targets together.",
			noSlidingFigure,
		},
			v.max("max_over_time("+v.second("pass_peak")+"[$__range])")),
		figure(head{
			27, "Of limit", share,
			"Share of the QPS limit that a target used in its highest sliding second, " +
				"by the limit in force at that time. Of the target with the highest share.",
			noLimitFigure,
		},
			v.ofLimit("pass_peak", "limit_qps")),
		figure(head{4, "Refused", share, "Share of refused calls.", noShareFigure},
			ratio(refused, passed+" + "+refused)).Thresholds(above(0.01, "orange")).ColorScheme(byThreshold()),
		figure(head{5, "Failed", share, "Share of completed calls with an error.", noShareFigure},
			ratio(v.mean("exception_total"), v.mean("complete_total"))).
			Thresholds(above(0.01, "red")).ColorScheme(byThreshold()),
		p99(6, v, func(v view, expr func(view) string) string { return expr(v) }),
		figure(head{7, "Slowest call", duration, "Longest response time.", noSlowestFigure}, v.slowest("$__range")),
		figure(head{
			28, "In flight on average", number,
			"Calls in flight, on average over the time shown, of all targets together.",
			noTotalsFigure,
		}, v.mean("in_flight_seconds_total")),
		figure(head{
			26, "In flight, busiest", number,
			"Calls in flight in the busiest second: on average over that second, of all targets together.",
			noInFlightFigure,
		},
			peak(v.inSecond("in_flight_avg"), "$__range")),
		figure(head{
			29, "In flight at once, at least", calls,
			"Calls in flight at once at one target in any second. " +
				"This is a lower bound: there may have been more between two readings.",
			noMaximumFigure,
		},
			v.max("max_over_time("+v.second("in_flight_max")+"[$__range])")),
		figure(head{
			30, "Of limit on concurrency", share,
			"Share of the concurrency limit that a target used at least, by the limit in force at that time. " +
				"Of the target with the highest share.",
			noLimitFigure,
		},
			v.ofLimit("in_flight_max", "limit_concurrency")),
	}
	b.add(4, 3, figures[:4]...)
	b.x, b.y, b.line = 8, top+3, 0
	b.add(4, 3, figures[4:8]...)
	b.add(6, 3, figures[8:]...)
}

func (b *board) resourceCalls(v view) {
	b.row("Second by second")
	b.add(
		width, 10,
		limited(colored(simple(seconds(head{
			9, "Every second, and what a rate shows of it", calls,
			"Calls admitted in the busiest second of each step, of all targets together, " +
				"and the rate from the counters of the same calls. " +
				"The limit is the sum of the limits of the targets. " +
				"The line is absent without a limit, or if the limit is more than four times as high as the calls.",
			noSeconds,
		},
			query{legend: "busiest second", expr: peak(v.inSecond("pass"), "$__interval")},
			query{legend: "rate()", expr: v.rate("pass_total")},
			query{
				legend: "limit",
				expr: near(
					v.sum(v.metric("limit_qps")), v.sum("max_over_time("+v.second("pass")+"[$__range] @ end())")),
			})), "busiest second", "blue", "rate()", "orange"), "limit"),
	)
	b.add(
		12, 8,
		colored(simple(seconds(head{
			10, "Admitted and refused", calls,
			"The busiest second of each step, and the second with most refusals. " +
				"With a limit, the blue line ends at it, and the orange calls exceeded it. " +
				"Calls that dry runs would refuse are admitted.",
			noSeconds,
		},
			query{legend: "admitted", expr: peak(v.inSecond("pass"), "$__interval")},
			query{legend: "refused", expr: peak(v.inSecond("block"), "$__interval")},
			query{legend: "on borrowed quota", expr: peak(v.inSecond("occupied_pass"), "$__interval")},
			query{legend: "a dry run would refuse", expr: peak(v.inSecond("dry_run_block"), "$__interval")},
		)), "admitted", "blue", "refused", "orange", "on borrowed quota", "purple", "a dry run would refuse", "yellow"),
		colored(simple(seconds(head{
			11, "Ended and failed", calls,
			"The second of each step with the most completed calls, and the second with the most failures.",
			noSeconds,
		},
			query{legend: "ended", expr: peak(v.inSecond("complete"), "$__interval")},
			query{legend: "failed", expr: peak(v.inSecond("exception"), "$__interval")},
		)), "ended", "blue", "failed", "red"),
	)
	b.add(
		8, 8,
		quiet(series(head{
			12, "Refused by reason", perSecondUnit,
			"Average by reason: the limit that refused the calls, or the reason passed to Block; " +
				"with --metrics.by there is only one. " +
				"Also the calls that dry runs would refuse, " +
				"and those admitted on quota borrowed from a later second.",
			noTotals,
		},
			query{
				legend: "refused, {{reason}}",
				expr:   named(view{resources: one, by: "reason"}.rate("block_total"), "reason", "for any reason"),
			},
			query{legend: "dry run, {{reason}}", expr: view{resources: one, by: "reason"}.rate("dry_run_block_total")},
			query{legend: "on borrowed quota", expr: v.rate("occupied_pass_total")})),
		simple(series(head{
			31, "Ended by code", perSecondUnit,
			"Calls that ended, by HTTP status or gRPC code, on average.",
			noTotals,
		},
			query{
				legend: "{{code}}",
				expr:   named(view{resources: one, by: "code"}.rate("complete_total"), "code", "no code"),
			})),
		colored(simple(seconds(head{
			13, "Worst second", share,
			"Highest share of refused calls in a second of each step, and highest share of failed calls.",
			noSeconds,
		},
			query{
				legend: "refused",
				expr:   peak(ratio(v.inSecond("block"), v.inSecond("pass")+" + "+v.inSecond("block")), "$__interval"),
			},
			query{legend: "failed", expr: peak(ratio(v.inSecond("exception"), v.inSecond("complete")), "$__interval")},
		)), "refused", "orange", "failed", "red").AxisSoftMax(0.01),
	)
}

func (b *board) resourceTimes(v view) {
	b.row("Duration")
	le := view{resources: one, by: "le"}
	classic := le.added("rt_seconds_bucket") + perSecond +
		" or on () " + le.sum("rate("+le.metric("rt_seconds_bucket")+"[$__rate_interval])")
	// Grafana stacks the lines of the buckets point by point and ignores their times, so no line may have a gap.
	gaps := " or 0 * (" + le.sum("last_over_time("+le.metric("rt_seconds_bucket")+"[$__range] @ end())") +
		" or " + le.sum("last_over_time("+le.second("rt_seconds_bucket")+"[5m] @ end())") + ")"
	b.add(
		12, 10,
		heat(head{
			14, "Response times", duration,
			"Calls by response time, of single seconds if the per-second endpoint is scraped with " +
				"histogram=classic or native, otherwise from the histogram of /metrics. " +
				"The source is the native histogram if the server stores it. " +
				"In VictoriaMetrics it is the classic buckets of /metrics, " +
				"because no expression valid in Prometheus, too, converts vmrange into lines.",
			noQuantiles,
		},
			classic+gaps,
			v.sum("sum_over_time("+v.second("rt_distribution_seconds")+"[$__interval])")+perSecond+
				" or on () "+v.sum("rate("+v.metric("rt_seconds")+"[$__rate_interval])")),
		colored(simple(seconds(head{
			15, "Response times of single seconds", duration,
			"The slowest and the fastest call, the mean, " +
				"and the highest p99 of a second and target in each step. " +
				"The p99 exists only for seconds that were read within a minute. " +
				"Of Sentinel's metric log, the highest mean of a process. " +
				"Points are calls with a trace ID, where the server stores exemplars.",
			noCompleted,
		},
			query{legend: "slowest", expr: v.slowest("$__interval")},
			query{legend: "p99", expr: v.max("max_over_time(" + v.second("rt_p99_seconds") + "[$__interval])")},
			query{
				legend: "mean",
				expr: ratio(
					v.sum("sum_over_time("+v.second("rt_sum_seconds")+"[$__interval])"),
					v.sum("sum_over_time("+v.second("complete")+"[$__interval])")),
			},
			query{legend: "fastest", expr: v.fastest("$__interval")},
			query{
				legend: "highest mean, Sentinel",
				expr:   v.max("max_over_time(" + v.second("rt_avg_seconds") + "[$__interval])"),
			},
			v.traces(),
		)), "slowest", "purple", "p99", "red", "mean", "blue", "fastest", "green", "highest mean, Sentinel", "blue").
			// Seconds without calls interrupt the line, so each value is also a point.
			FillOpacity(0).ShowPoints(common.VisibilityModeAlways).PointSize(3).
			// A log scale keeps usual response times readable next to calls that took a thousand times as long.
			ScaleDistribution(common.NewScaleDistributionConfigBuilder().Type(common.ScaleDistributionLog).Log(10)),
	)
}

// perSecond divides the events in a step by its seconds.
const perSecond = " / ($__interval_ms / 1000)"

func (b *board) resourceInFlight(v view) {
	byTarget := view{resources: one, by: "instance"}
	b.row("Concurrency")
	b.add(
		8, 8,
		limited(colored(simple(seconds(head{
			16, "In flight", number,
			"Calls in flight in the busiest second of each step, on average over that second, " +
				"of all targets together, and the maximum at the ends of seconds. " +
				"The limit is the sum over all targets. " +
				"The line is absent if the limit is more than four times as high.",
			noInFlight,
		},
			query{legend: "busiest second", expr: peak(v.inSecond("in_flight_avg"), "$__interval")},
			query{legend: "when a second ended", expr: peak(v.inSecond("in_flight"), "$__interval")},
			query{
				legend: "limit",
				expr: near(
					v.sum(v.metric("limit_concurrency")),
					v.sum("max_over_time("+v.second("in_flight_avg")+"[$__range] @ end())")),
			},
		)), "busiest second", "blue", "when a second ended", "green"), "limit"),
		simple(series(head{
			47, "Age of calls in flight", duration,
			"Age of the calls in flight at the time of each scrape: " +
				"the oldest call at any target, among calls with a context, and the average of all calls. " +
				"A hanging call appears here long before it has a response time.",
			noOldest,
		},
			query{legend: "oldest", expr: v.max(v.metric("in_flight_oldest_seconds"))},
			query{
				legend: "average",
				expr:   ratio(v.sum(v.metric("in_flight_elapsed_seconds")), v.sum(v.metric("in_flight"))),
			},
		)),
		seconds(head{
			51, "In flight at once by target", calls,
			"Most calls in flight at once at each target in any second of each step. The two lines are bounds. " +
				"They are equal if the maximum is known exactly, and far apart if calls come from many origins.",
			noMaximum,
		},
			query{
				legend: "{{instance}}, at least",
				expr:   byTarget.max("max_over_time(" + v.second("in_flight_max") + "[$__interval])"),
			},
			query{
				legend: "{{instance}}, at most",
				expr:   byTarget.max("max_over_time(" + v.second("in_flight_max_upper") + "[$__interval])"),
			}),
	)
}
