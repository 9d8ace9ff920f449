package main

import (
	"strings"

	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// own selects a self-metric.
func own(name string) string { return "windowstat_" + name + "{" + job + "}" }

// grew returns the growth of a self-metric counter over the whole time range.
func grew(name string) string { return "sum(increase(" + own(name) + "[$__range]))" }

// pace returns the growth per second of a self-metric counter, grouped by the labels by.
func pace(name, by string) string {
	return "sum by (" + by + ") (rate(" + own(name) + "[$__rate_interval]))"
}

// self builds the dashboard of windowstat itself: its cost, and whether data is lost.
func self() (file, error) {
	b := newBoard("self", "windowstat itself",
		"What windowstat costs, and whether every second arrives: "+
			"scrapes, pushes, the metric log, overflow, the clock, the sampler; "+
			"and the resource usage of the process.")
	b.withVariables()
	b.withTotal("")
	b.withAnnotations()
	b.selfFigures()
	b.selfWays()
	b.selfPages()
	b.selfProcess()
	b.selfLog()
	b.selfDatabase()
	b.selfNames()
	b.selfClock()
	b.selfPush()
	b.selfOptional()
	return b.build()
}

func (b *board) selfFigures() {
	// Optional metrics have no series without a scraper or a push, and a sum over no series is empty.
	var lost []string
	for _, way := range []string{"cursor_", "metriclog_", "push_"} {
		lost = append(lost, "("+grew(way+"lost_seconds_total")+" or 0 * count("+own("build_info")+"))")
	}
	var kinds []string
	for _, kind := range []string{"", "origin_", "entrance_", "leaf_", "tree_"} {
		kinds = append(kinds, grew(kind+"overflow_events_total"))
	}
	b.add(
		4, 4,
		figure(head{
			1, "Targets", number,
			"Processes with metrics in the data source.",
			noTargetFigure,
		}, "count("+own("build_info")+")"),
		figure(head{
			2, "Lost", duration,
			"Seconds that were dropped before a scraper, a push or the metric log received them, " +
				"over the time shown.",
			noTargetFigure,
		}, strings.Join(lost, " + ")).
			Thresholds(above(0.5, "red")).ColorScheme(byThreshold()),
		figure(head{
			3, "Overflow", number,
			"Calls counted as _other, or without a node in the call tree, because there were too many names.",
			noTargetFigure,
		}, strings.Join(kinds, " + ")).
			Thresholds(above(0.5, "orange")).ColorScheme(byThreshold()),
		figure(head{
			4, "Scrape", duration,
			"Duration of the slowest of the last responses.",
			noScrapeFigure,
		}, "max("+own("scrape_duration_seconds")+")"),
		figure(head{
			5, "Lag", duration,
			"Sealed seconds that the slowest scraper has not fetched yet. " +
				"It receives them with the next scrape, so a lag of one scrape interval is normal.",
			noScraperFigure,
		},
			"max("+own("cursor_lag_seconds")+")"),
		figure(head{
			6, "Clock", duration,
			"Offset between the wall clock of a target and the names of its seconds.",
			noTargetFigure,
		}, "max(abs("+own("clock_offset_seconds")+"))").
			Thresholds(above(1, "orange")).ColorScheme(byThreshold()),
	)
}

func (b *board) selfPages() {
	b.row("Pages: what a scrape costs")
	b.add(
		8, 8,
		series(head{
			7, "Duration of a scrape", duration,
			"Duration of the last response of each page, until it was written.",
			noScrape,
		},
			query{legend: "{{page}} {{instance}}", expr: own("scrape_duration_seconds")}),
		series(head{8, "Samples of a scrape", number, "Samples in the last response of each page.", noScrape},
			query{legend: "{{page}} {{instance}}", expr: own("scrape_samples")}),
		series(head{
			9, "Size of a scrape", size,
			"Size of the last response of each page, before compression.",
			noScrape,
		},
			query{legend: "{{page}} {{instance}}", expr: own("scrape_bytes")}),
	)
}

// selfWays adds the panels of scrapers and pushes. Most processes have one of the two.
func (b *board) selfWays() {
	by, scraper := "cursor, client, instance", "{{cursor}} {{client}} of {{instance}}"
	push := "{{format}} to {{target}} of {{instance}}"
	b.row("Scrapers of the per-second endpoint, and pushes")
	b.add(
		8, 8,
		series(head{
			10, "Lag of scrapers and pushes", duration,
			"Sealed seconds that each scraper has not fetched yet, or that were not pushed. " +
				"A sawtooth as high as the scrape interval is normal; a growing line is not.",
			noWay,
		},
			query{legend: scraper, expr: "max by (" + by + ") (" + own("cursor_lag_seconds") + ")"},
			query{legend: push, expr: own("push_lag_seconds")},
			query{
				legend: "since the last push, " + push,
				expr:   "time() - (" + own("push_last_success_timestamp_seconds") + " > 0)",
			}),
		series(head{
			11, "Delivered", "none",
			"Seconds delivered to each scraper, or pushed, per second: one, or more while it catches up.",
			noWay,
		},
			query{legend: scraper, expr: pace("cursor_delivered_seconds_total", by)},
			query{legend: push, expr: pace("push_seconds_total", "format, target, instance")}),
		problems(head{
			12, "Trouble of scrapers", "none",
			"Seconds, in a second, that were dropped from the history before a scraper fetched them, " +
				"were sent again because the connection broke, or whose receipt could not be confirmed; " +
				"positions that could not be written to disk; evicted cursors; " +
				"and clients that were disconnected because they were too slow. " +
				"The metric log has the lost seconds.",
			noScraper,
		},
			query{legend: "lost", expr: sum("cursor_lost_seconds_total")},
			query{legend: "sent again", expr: sum("cursor_resent_seconds_total")},
			query{legend: "unconfirmed", expr: sum("cursor_unconfirmed_seconds_total")},
			query{legend: "positions not saved", expr: sum("cursor_save_errors_total")},
			query{legend: "cursors pushed out", expr: sum("cursor_evictions_total")},
			query{legend: "slow readers disconnected", expr: sum("scrape_dropped_total")}),
	)
}

// selfPush is a closed row, because most processes have no pushes. Their lag is in [board.selfWays].
func (b *board) selfPush() {
	b.closedRow(
		"Pushes, where there are some", 8, 7,
		simple(series(head{17, "Pushed samples", number, "Samples that were pushed, a second.", noPush},
			query{
				legend: "{{format}} to {{target}} of {{instance}}",
				expr:   pace("push_samples_total", "format, target, instance"),
			})),
		simple(series(head{18, "Size of pushes", "Bps", "Bytes that were pushed in a second, compressed.", noPush},
			query{
				legend: "{{format}} to {{target}} of {{instance}}",
				expr:   pace("push_bytes_total", "format, target, instance"),
			})),
		problems(head{
			20, "Trouble of pushes", "none",
			"Seconds, in a second, that were dropped from the history before they could be pushed; " +
				"samples that the server refused permanently, or with an unknown result; " +
				"and requests sent again because the server was unreachable or did not accept them.",
			noPush,
		},
			query{legend: "lost seconds", expr: sum("push_lost_seconds_total")},
			query{legend: "refused samples", expr: sum("push_refused_samples_total")},
			query{legend: "unconfirmed samples", expr: sum("push_unconfirmed_samples_total")},
			query{legend: "samples sent again", expr: sum("push_resent_samples_total")},
			query{legend: "requests sent again", expr: sum("push_retries_total")}),
	)
}

func (b *board) selfLog() {
	b.row("Metric log")
	b.add(
		8, 7,
		simple(series(head{
			23, "Age of the last second", duration,
			"Time since the last second with a row. A process without calls writes no rows.",
			noLog,
		},
			query{
				legend: "{{instance}}",
				expr:   "time() - (" + own("metriclog_last_second_timestamp_seconds") + " > 0)",
			})),
		quiet(series(head{
			24, "Logged", "none",
			"Seconds processed by the log, a second (normally one), and rows written.",
			noLog,
		},
			query{legend: "seconds, {{instance}}", expr: pace("metriclog_seconds_total", "instance")},
			query{legend: "rows, {{instance}}", expr: pace("metriclog_rows_total", "instance")})),
		problems(head{
			26, "Trouble of the log", "none",
			"Seconds with missing rows, and failed attempts to write, a second.",
			noLog,
		},
			query{legend: "lost seconds", expr: sum("metriclog_lost_seconds_total")},
			query{legend: "errors", expr: sum("metriclog_errors_total")}),
	)
}

// selfDatabase is a closed row, because processes compare a database only if configured.
func (b *board) selfDatabase() {
	legend := "{{target}} {{selector}} of {{instance}}"
	b.closedRow(
		"Database, compared with the metric log", 12, 7,
		problems(head{
			44, "Trouble of the database", duration,
			"Seconds in the window of the last check that are missing in the database, " +
				"have other values there, or are missing in the metric log.",
			noCheck,
		},
			query{legend: "missing", expr: "sum(" + own("database_missing_seconds") + ")"},
			query{legend: "different", expr: "sum(" + own("database_different_seconds") + ")"},
			query{legend: "too much", expr: "sum(" + own("database_extra_seconds") + ")"}),
		quiet(series(head{
			45, "Checks", "none",
			"Seconds compared, a second; failed checks, a second; and the time since the last successful check.",
			noCheck,
		},
			query{
				legend: "seconds, " + legend,
				expr:   pace("database_checked_seconds_total", "target, selector, instance"),
			},
			query{legend: "errors, " + legend, expr: pace("database_check_errors_total", "target, selector, instance")},
			query{
				legend: "since the last, " + legend,
				expr:   "time() - " + own("database_last_success_timestamp_seconds"),
			})),
	)
}

// sum returns the growth per second of a self-metric counter, over all targets.
func sum(name string) string { return "sum(rate(" + own(name) + "[$__rate_interval]))" }

// problems returns a graph of errors, normally zero. The first query gets the most severe color.
func problems(h head, queries ...query) *timeseries.PanelBuilder {
	var colors []string
	for i, q := range queries {
		colors = append(colors, q.legend, []string{"red", "orange", "yellow", "purple", "blue", "dark-red"}[i])
	}
	return colored(quiet(series(h, queries...)), colors...)
}
