package main

import "github.com/grafana/grafana-foundation-sdk/go/timeseries"

// resourceTargets adds the panels with a line for each target.
func (b *board) resourceTargets() {
	v := view{resources: one, by: "instance"}
	b.row("By target")
	b.add(
		12, 8,
		limited(seconds(head{
			18, "Busiest second by target", calls,
			"Calls that each target admitted in its busiest second of each step, and the limit of each target, " +
				"unless it is more than four times as high.",
			noSeconds,
		},
			query{legend: "{{instance}}", expr: v.max("max_over_time(" + v.second("pass") + "[$__interval])")},
			query{
				legend: "limit",
				expr: near(
					"max("+v.metric("limit_qps")+")", "max(max_over_time("+v.second("pass")+"[$__range] @ end()))"),
			}), "limit"),
		seconds(head{
			19, "Highest sliding second by target", calls,
			"Most calls in any sliding second that ended in the step. " +
				"If a burst straddles two seconds of the clock, the value is higher than both.",
			noSliding,
		},
			query{legend: "{{instance}}", expr: v.max("max_over_time(" + v.second("pass_peak") + "[$__interval])")}),
		simple(seconds(head{
			20, "Targets", number,
			"Number of targets with this resource in each second. " +
				"A second that is missing here is missing in every sum.",
			noSeconds,
		},
			query{
				legend: "targets",
				expr: "min_over_time((count(last_over_time(" + view{resources: one}.second("pass") +
					"[999ms])))[$__interval:1s])",
			})),
		gauges(),
	)
}

// resourceOrigins adds the panels of callers, for processes with origins in /metrics.
func (b *board) resourceOrigins() {
	const known = ` and on () count(windowstat_pass_total{` + job + `,origin!=""})` // of any resource
	v := view{resources: one, by: "origin"}
	by := func(expr string) query {
		return query{legend: "{{origin}}", expr: named(expr+known, "origin", "no origin")}
	}
	b.closedRow(
		"By origin, with --metrics.by=origin", 8, 8,
		series(head{
			23, "Admitted by origin", perSecondUnit,
			"Calls of each origin, on average.",
			noOrigins,
		}, by(v.rate("pass_total"))),
		series(head{
			24, "Peak by origin", calls,
			"Most calls of each origin in any sliding second of the minute before, " +
				"of the target with the highest peak.",
			noOrigins,
		},
			by(v.max(v.metric("pass_qps_peak")))),
		series(head{
			25, "Refused by origin", perSecondUnit,
			"Calls of each origin that were refused, on average.",
			noOrigins,
		}, by(v.rate("block_total"))).AxisSoftMax(1),
	)
}

// gauges returns the panel for servers that scrape only /metrics.
func gauges() *timeseries.PanelBuilder {
	v := view{resources: one}
	queries := []query{{legend: "admitted, peak of a minute", expr: v.sum(v.metric("pass_qps_peak"))}}
	for _, g := range []struct{ legend, name string }{
		{"admitted", "pass_qps"}, {"refused", "block_qps"}, {"ended", "complete_qps"}, {"failed", "exception_qps"},
	} {
		queries = append(queries, query{legend: g.legend, expr: v.sum(v.metric(g.name))})
	}
	return simple(series(head{
		21, "Without the per-second endpoint", calls,
		"Single seconds in /metrics: " +
			"the last second before each scrape, and the highest sliding second of the minute before. " +
			"Sums over the targets, and over origins if /metrics has origins; " +
			"their peaks may be from different seconds.",
		noTotals,
	},
		queries...))
}
