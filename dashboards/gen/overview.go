package main

import "slices"

// overview builds the dashboard of all resources. It shows which resource to check.
func overview() (file, error) {
	b := newBoard("overview", "windowstat / Overview",
		"The whole service, by its inbound calls, and each resource: "+
			"rate, errors, duration, concurrency, and the peak second next to the average. "+
			"Without inbound calls, or if some resources are selected, the figures are sums over resources, "+
			"and nested calls count again. Ends 20 seconds ago, when every target was scraped.")
	b.withVariables()
	// The name differs from the variable resource of the other dashboard: a link would pass "All" to that dashboard as
	// a resource.
	b.WithVariable(labelValues("resources", "Resource", resources).Regex(quotable).
		Multi(true).IncludeAll(true).AllValue(".*").Current(all))
	b.withTotal(many)
	b.withCoarse(many)
	b.withRunbook()
	b.withAnnotations()

	everything, each := view{resources: many}, view{resources: many, by: "resource"}
	b.overviewFigures(everything)
	b.overviewTable(each)
	b.overviewRate(everything, each)
	b.overviewErrors(everything, each)
	b.overviewDuration(everything, each)
	b.overviewConcurrency(everything, each)
	return b.build()
}

// rate and inSecond apply the methods of view to the total.
func rate(v view, counter string) string {
	return v.total(func(v view) string { return v.rate(counter) })
}

func inSecond(v view, name string) string {
	return v.total(func(v view) string { return v.inSecond(name) })
}

func (b *board) overviewFigures(v view) {
	mean := func(counter string) string { return v.total(func(v view) string { return v.mean(counter) }) }
	passed, refused := mean("pass_total"), mean("block_total")
	link := links("This resource second by second", toResource("__data.fields.Resource"), false)
	// The first row shows problems: calls that hang, and alerts. Names of alerts are long, so both tables are wide.
	// They show three lines: a hang usually has the resource that hangs and two that wait for it.
	b.add(
		12, 6,
		view{resources: many}.hangs(49, "resource", "Resource", link),
		alerts(24),
	)
	b.add(
		4, 3,
		figure(head{
			1, "Average", perSecondUnit,
			"Calls admitted a second, on average over the time shown.",
			noTotalsFigure,
		}, passed),
		figure(head{
			2, "Peak", calls,
			"Calls admitted in the busiest second of the time shown, of all targets together. " +
				"A peak far above the average is a burst that a rate does not show.",
			noSecondsFigure,
		},
			peak(inSecond(v, "pass"), "$__range")).ColorScheme(fixed("blue")),
		figure(head{3, "Refused", share, "Share of calls refused by a limit or by Block.", noShareFigure},
			ratio(refused, passed+" + "+refused)).Thresholds(above(0.01, "orange")).ColorScheme(byThreshold()),
		figure(head{4, "Failed", share, "Share of completed calls with an error.", noShareFigure},
			ratio(mean("exception_total"), mean("complete_total"))).
			Thresholds(above(0.01, "red")).ColorScheme(byThreshold()),
		figure(head{
			6, "In flight", number,
			"Calls in flight, on average over the time shown, of all targets together.",
			noTotalsFigure,
		}, mean("in_flight_seconds_total")),
		p99(5, v, view.total),
	)
}

func (b *board) overviewRate(everything, each view) {
	b.row("Rate")
	b.add(
		12, 10,
		colored(simple(seconds(head{
			11, "Peak second and average", calls,
			"The highest second in each step, and the average of the counters. " +
				"Where they differ, calls came in bursts.",
			noSeconds,
		},
			query{legend: "peak second", expr: peak(inSecond(everything, "pass"), "$__interval")},
			query{
				legend: "average",
				expr:   rate(everything, "pass_total"),
			})), "peak second", "blue", "average", "orange"),
		colored(simple(seconds(head{
			12, "Refused: peak second and average", calls,
			"Calls refused in the worst second of each step; " +
				"and on average by reason, of all resources, nested calls included.",
			noSeconds,
		},
			query{legend: "peak second", expr: peak(inSecond(everything, "block"), "$__interval")},
			query{
				legend: "average, {{reason}}",
				expr:   named(view{resources: many, by: "reason"}.rate("block_total"), "reason", "any reason"),
			})), "peak second", "orange").AxisSoftMax(1),
		seconds(head{
			13, "Peak second by resource", calls,
			"The highest second in each step, of the ten resources with the highest peaks.",
			noSeconds,
		},
			query{legend: "{{resource}}", expr: each.highest(peak(each.inSecond("pass"), "$__interval"), "pass")}),
		series(head{
			14, "Average by resource", perSecondUnit,
			"Average of the ten resources with the most calls. Bursts look small here.",
			noTotals,
		},
			query{legend: "{{resource}}", expr: each.busiest(each.rate("pass_total"), "pass_total")}),
	)
}

func (b *board) overviewErrors(everything, each view) {
	b.row("Errors")
	b.add(
		12, 9,
		series(head{
			15, "Failed by resource", share,
			"Share of completed calls with an error, of the ten resources with the most errors.",
			noShare,
		},
			query{
				legend: "{{resource}}",
				expr: each.busiest(
					ratio(each.rate("exception_total"), each.rate("complete_total")), "exception_total"),
			}),
		colored(simple(seconds(head{
			16, "Failed: worst second", calls,
			"Calls that ended with an error in the worst second of each step, " +
				"next to all calls that ended in the busiest second.",
			noSeconds,
		},
			query{legend: "failed", expr: peak(inSecond(everything, "exception"), "$__interval")},
			query{
				legend: "ended",
				expr:   peak(inSecond(everything, "complete"), "$__interval"),
			})), "failed", "red", "ended", "blue"),
		series(head{
			17, "Failed by class", perSecondUnit,
			"Errors by class. One line if no classes are configured.",
			noTotals,
		},
			query{legend: "{{class}}", expr: view{resources: many, by: "class"}.rate("exception_class_total") +
				` or on () label_replace(` + rate(everything, "exception_total") + `, "class", "all errors", "", "")`}),
		series(head{25, "Ended by code", perSecondUnit, "Calls that ended, by HTTP status or gRPC code.", noTotals},
			query{
				legend: "{{code}}",
				expr:   named(rate(view{resources: many, by: "code"}, "complete_total"), "code", "no code"),
			}),
	)
}

func (b *board) overviewDuration(everything, each view) {
	topTen := func(v view, expr func(view) string) string { return "topk(10, " + expr(v) + ")" }
	b.row("Duration")
	b.add(
		8, 10,
		simple(series(head{
			18, "Response time", duration,
			"Quantiles over all resources, to 9%. " +
				"At most: the bound of the bucket with the quantile, if the server has only classic histograms. " +
				"Points are calls with a trace ID, where the server stores exemplars.",
			noQuantiles,
		},
			slices.Concat(
				everything.quantiles("p50", 0.5, view.total), everything.quantiles("p90", 0.9, view.total),
				everything.quantiles("p99", 0.99, view.total), []query{everything.traces()},
			)...)),
		series(head{
			19, "p99 by resource", duration,
			"The ten highest p99 at each time, to 9%. " +
				"At most: the bound of the bucket with the p99, if the server has only classic histograms. " +
				"Points are calls with a trace ID, where the server stores exemplars.",
			noQuantiles,
		},
			append(each.quantiles("{{resource}}", 0.99, topTen), each.traces())...),
		seconds(head{
			20, "Slowest call by resource", duration,
			"Longest response time in each step, of the ten resources with the longest.",
			noSlowest,
		},
			query{legend: "{{resource}}", expr: each.highest(each.slowest("$__interval"), "rt_max_seconds")}),
	)
}

func (b *board) overviewConcurrency(everything, each view) {
	b.row("Concurrency")
	b.add(
		8, 10,
		seconds(head{
			23, "In flight by resource", number,
			"Calls in flight in the busiest second of each step, on average over that second, " +
				"of all targets together; of the ten resources with the most calls in flight.",
			noInFlight,
		},
			query{
				legend: "{{resource}}",
				expr:   each.highest(peak(each.inSecond("in_flight_avg"), "$__interval"), "in_flight_avg"),
			}),
		series(head{
			46, "Oldest call in flight", duration,
			"Age of the oldest call in flight at any target, at the time of each scrape, " +
				"among calls with a context. Of the ten resources with the oldest calls.",
			noOldest,
		},
			query{legend: "{{resource}}", expr: "topk(10, " + each.max(each.metric("in_flight_oldest_seconds")) + ")"}),
		colored(simple(seconds(head{
			22, "In flight: what a scrape sees", number,
			"Calls in flight at the time of each scrape, " +
				"next to the average over the busiest second of each step and the average over all seconds.",
			noInFlight,
		},
			query{legend: "busiest second", expr: peak(inSecond(everything, "in_flight_avg"), "$__interval")},
			query{legend: "average", expr: rate(everything, "in_flight_seconds_total")},
			query{
				legend: "at the scrape",
				expr:   everything.total(func(v view) string { return v.sum(v.metric("in_flight")) }),
			})), "busiest second", "blue", "average", "green", "at the scrape", "orange"),
	)
}
