package main

// selfProcess shows the calls of the process and its resources from the metrics of client_golang.
func (b *board) selfProcess() {
	of := func(metric string) string { return metric + "{" + job + "}" }
	b.row("Process")
	b.add(
		6, 7,
		series(head{
			40, "Calls", perSecondUnit,
			"Calls that each target admitted, on average: the inbound ones, or the sum of its resources.",
			noTotals,
		},
			query{legend: "{{instance}}", expr: rate(view{by: "instance"}, "pass_total")}),
		series(head{41, "CPU", number, "Processors that each target kept busy, on average.", noProcess},
			query{
				legend: "{{instance}}",
				expr:   "sum by (instance) (rate(" + of("process_cpu_seconds_total") + "[$__rate_interval]))",
			}),
		series(head{42, "Goroutines", number, "Goroutines at the time of each scrape.", noProcess},
			query{legend: "{{instance}}", expr: of("go_goroutines")}),
		series(head{
			43, "Pauses for garbage collection", share,
			"Share of the time in which the garbage collector had stopped the process.",
			noProcess,
		},
			query{
				legend: "{{instance}}",
				expr:   "sum by (instance) (rate(" + of("go_gc_duration_seconds_sum") + "[$__rate_interval]))",
			}),
	)
}

// selfNames shows the names that use memory, and the calls counted under shared names because there were too many
// names.
func (b *board) selfNames() {
	b.row("Names and limits")
	b.add(
		6, 8,
		simple(series(head{
			27, "Kept apart", number,
			"Resources, entrances, and their combinations with origins, the main users of memory. " +
				"Of the target with the highest value.",
			noTarget,
		},
			query{legend: "resources", expr: "max(" + own("resources") + ")"},
			query{legend: "entrances", expr: "max(" + own("entrances") + ")"},
			query{legend: "leaves", expr: "max(" + own("leaves") + ")"})),
		quiet(series(head{
			28, "Overflow by kind", perSecondUnit,
			"Calls a second counted as _other because a kind had too many names, " +
				"counted as unmatched because the name was not earned, or without a node in the call tree.",
			noTarget,
		},
			query{legend: "resources", expr: sum("overflow_events_total")},
			query{legend: "not earned", expr: sum("unearned_events_total")},
			query{legend: "origins", expr: sum("origin_overflow_events_total")},
			query{legend: "entrances", expr: sum("entrance_overflow_events_total")},
			query{legend: "leaves", expr: sum("leaf_overflow_events_total")},
			query{legend: "call tree", expr: sum("tree_overflow_events_total")})),
		quiet(series(head{
			29, "Retired resources", "none",
			"Resources a second that were retired because they were idle.",
			noTarget,
		},
			query{legend: "{{instance}}", expr: pace("retired_resources_total", "instance")})),
		simple(series(head{
			30, "Limits in force", number,
			"Number of limits of each target.",
			noTarget,
		}, query{legend: "{{instance}}", expr: own("limits")})),
	)
	b.add(
		24, 7,
		simple(series(head{
			48, "Memory of the statistics", size,
			"Heap memory by part, the reserved memory, and its maximum, of the target with the highest value. " +
				"At the maximum, new names count for _other.",
			noTarget,
		},
			query{legend: "{{part}}", expr: "max by (part) (" + own("memory_bytes") + ")"},
			query{legend: "reserved", expr: "max(" + own("memory_reserved_bytes") + ")"},
			query{legend: "maximum", expr: "max(" + own("memory_max_bytes") + ")"})),
	)
}

// selfClock adds the panels of the clock and the version.
func (b *board) selfClock() {
	b.row("Clock and build")
	b.add(
		8, 7,
		simple(series(head{
			33, "Offset of the clock", duration,
			"How far the wall clock is ahead of the names of the seconds.",
			noTarget,
		}, query{legend: "{{instance}}", expr: own("clock_offset_seconds")})),
		problems(head{
			34, "Trouble of the clock", "none",
			"Seconds, in a second, with a name that the wall clock used twice: " +
				"counted in totals, not exported. " +
				"And the number of times the wall clock was off by a second or more.",
			noTarget,
		},
			query{legend: "repeated seconds", expr: sum("clock_repeated_seconds_total")},
			query{legend: "steps", expr: sum("clock_steps_total")}),
		simple(series(head{39, "Versions", number, "Targets of each version.", noTarget},
			query{
				legend: "windowstat {{version}}, {{goversion}}",
				expr:   "count by (version, goversion) (" + own("build_info") + ")",
			})),
	)
}

// selfOptional is a closed row, because most processes have no file of limits and do not sample series of other
// libraries.
func (b *board) selfOptional() {
	b.closedRow(
		"File of limits and sampler, where there are some", 6, 7,
		simple(series(head{
			31, "Age of the limits", duration,
			"Time since limits were last taken from the file. None without a file.",
			noFile,
		},
			query{
				legend: "{{instance}}",
				expr:   "time() - (" + own("limits_last_reload_success_timestamp_seconds") + " > 0)",
			})),
		quiet(series(head{
			32, "Limits that could not be read", "none",
			"Failed reloads a second, and 1 while the file of limits cannot be loaded. " +
				"The previous limits stay in force.",
			noFile,
		},
			query{legend: "{{instance}}", expr: pace("limits_reload_failures_total", "instance")},
			query{legend: "failing now, {{instance}}", expr: "1 - " + own("limits_last_reload_successful")})),
		quiet(series(head{
			36, "Sampled series", number,
			"Series of other libraries that are sampled each second, and those left out.",
			noSampler,
		},
			query{legend: "sampled, {{instance}}", expr: own("sampler_series")},
			query{legend: "left out, {{instance}}", expr: own("sampler_left_out_series")})),
		problems(head{
			38, "Trouble of the sampler", "none",
			"In a second: seconds without increases, because a sampling or the one before failed or was late; " +
				"samplings that failed, in part at least; those that were late; " +
				"increases of single counters without a known second.",
			noSampler,
		},
			query{legend: "seconds without", expr: sum("sampler_missed_seconds_total")},
			query{legend: "failed", expr: sum("sampler_errors_total")},
			query{legend: "late", expr: sum("sampler_late_total")},
			query{legend: "increases without a second", expr: sum("sampler_unplaced_increases_total")}),
	)
}
