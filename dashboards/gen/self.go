package main

import "strings"

// own selects a metric that windowstat has about itself.
func own(name string) string { return "windowstat_" + name + "{" + job + "}" }

// grew is how much a counter of windowstat's own grew over all the time that is shown.
func grew(name string) string { return "sum(increase(" + own(name) + "[$__range]))" }

// pace is how fast a counter of windowstat's own grows, by some labels.
func pace(name, by string) string {
	return "sum by (" + by + ") (rate(" + own(name) + "[$__rate_interval]))"
}

// self is about windowstat itself: what it costs, and whether anything is lost.
func self() (file, error) {
	b := newBoard("self", "windowstat itself",
		"What counting costs, and whether every second arrives: pages, readers, pushes, the metric log, overflow, the clock, the sampler.")
	b.withVariables()
	b.withAnnotations()
	b.selfFigures()
	b.selfPages()
	b.selfReaders()
	b.selfPush()
	b.selfLog()
	b.selfNames()
	b.selfClock()
	return b.build()
}

func (b *board) selfFigures() {
	lost := "(" + grew("cursor_lost_seconds_total") + ") + (" + grew("metriclog_lost_seconds_total") + " or vector(0)) + (" + grew("push_lost_seconds_total") + " or vector(0))"
	var kinds []string
	for _, kind := range []string{"", "origin_", "entrance_", "leaf_", "tree_"} {
		kinds = append(kinds, grew(kind+"overflow_events_total"))
	}
	b.add(
		4, 4,
		figure(head{1, "Targets", number, "Processes that show their metrics."}, "count("+own("build_info")+")"),
		figure(head{2, "Lost seconds", duration, "Seconds that a reader, a push or the metric log did not get, over the time shown."}, lost).
			Thresholds(above(0.5, "red")).ColorScheme(byThreshold()),
		figure(head{3, "Overflow", number, "Calls that were counted as _other, or have no place in the call tree, because there were too many names."}, strings.Join(kinds, " + ")).
			Thresholds(above(0.5, "orange")).ColorScheme(byThreshold()),
		figure(head{4, "Slowest page", duration, "How long the slowest of the last answers took."}, "max("+own("scrape_duration_seconds")+")"),
		figure(head{5, "Reader furthest behind", duration, "Sealed seconds that a reader has not had. It has them with the next scrape, so an interval of scrapes is normal."},
			"max("+own("cursor_lag_seconds")+")"),
		figure(head{6, "Clock offset", duration, "How far the wall clock of a target is from the names of its seconds."}, "max(abs("+own("clock_offset_seconds")+"))").
			Thresholds(above(1, "orange")).ColorScheme(byThreshold()),
	)
}

func (b *board) selfPages() {
	b.row("Pages: what a scrape costs")
	b.add(
		8, 8,
		series(head{7, "Duration of a scrape", duration, "How long the last answer of each page took, until it was written."},
			query{legend: "{{page}} {{instance}}", expr: own("scrape_duration_seconds")}),
		series(head{8, "Samples of a scrape", number, "Samples in the last answer of each page."},
			query{legend: "{{page}} {{instance}}", expr: own("scrape_samples")}),
		series(head{9, "Size of a scrape", size, "Size of the last answer of each page, before it was zipped."},
			query{legend: "{{page}} {{instance}}", expr: own("scrape_bytes")}),
	)
}

func (b *board) selfReaders() {
	b.row("Readers of the page of seconds")
	by := "cursor, client, instance"
	b.add(
		12, 8,
		series(head{10, "Lag", duration, "Sealed seconds that each reader has not had. A saw as high as the interval of its scrapes is normal; a line that grows is not."},
			query{legend: "{{cursor}} {{client}} of {{instance}}", expr: "max by (" + by + ") (" + own("cursor_lag_seconds") + ")"}),
		series(head{11, "Delivered", "none", "Seconds that each reader got in a second: one, or more while it catches up."},
			query{legend: "{{cursor}} {{client}} of {{instance}}", expr: pace("cursor_delivered_seconds_total", by)}),
	)
	b.add(
		12, 6,
		quiet(series(head{12, "Lost seconds of readers", "none", "Seconds that were dropped from the history before a reader came for them, a second. The metric log has them."},
			query{legend: "{{cursor}} of {{instance}}", expr: pace("cursor_lost_seconds_total", by)})),
		quiet(series(head{13, "Sent again", "none", "Seconds that were sent again, a second, because the connection broke after they were written."},
			query{legend: "{{cursor}} of {{instance}}", expr: pace("cursor_resent_seconds_total", by)})),
		quiet(series(head{14, "Unconfirmed", "none", "Seconds a second of which the connection did not prove that they were read."},
			query{legend: "{{cursor}} of {{instance}}", expr: pace("cursor_unconfirmed_seconds_total", by)})),
		quiet(series(head{15, "Positions that were not saved", "none", "Times a second that the readers' positions could not be written to disk. After a restart they get some seconds twice."},
			query{legend: "{{instance}}", expr: pace("cursor_save_errors_total", "instance")})),
	)
}

func (b *board) selfPush() {
	b.row("Push")
	legend := "{{way}} {{instance}}"
	b.add(
		6, 7,
		quiet(series(head{16, "Lag of pushes", duration, "Sealed seconds that were not pushed yet."}, query{legend: legend, expr: own("push_lag_seconds")})),
		simple(series(head{17, "Pushed", number, "Seconds and samples that were pushed, a second."},
			query{legend: "seconds, " + legend, expr: pace("push_seconds_total", "way, instance")},
			query{legend: "samples, " + legend, expr: pace("push_samples_total", "way, instance")})),
		simple(series(head{18, "Size of pushes", "Bps", "Bytes that were pushed in a second, compressed."}, query{legend: legend, expr: pace("push_bytes_total", "way, instance")})),
		simple(series(head{19, "Since the last push", duration, "Time since something was pushed last."},
			query{legend: legend, expr: "time() - (" + own("push_last_success_timestamp_seconds") + " > 0)"})),
	)
	b.add(
		8, 7,
		quiet(series(head{20, "Retries", "none", "Requests a second that were sent again, because the server could not be reached or did not take them."},
			query{legend: legend, expr: pace("push_retries_total", "way, instance")})),
		quiet(series(head{21, "Refused samples", "none", "Samples a second that the server refused for good."},
			query{legend: legend, expr: pace("push_refused_samples_total", "way, instance")})),
		quiet(series(head{22, "Lost seconds of pushes", "none", "Seconds that were dropped from the history before they could be pushed, a second."},
			query{legend: legend, expr: pace("push_lost_seconds_total", "way, instance")})),
	)
}

func (b *board) selfLog() {
	b.row("Metric log")
	b.add(
		6, 7,
		simple(series(head{23, "Age of the last second", duration, "Time since the last second that has a row. A process that has nothing to do writes none."},
			query{legend: "{{instance}}", expr: "time() - (" + own("metriclog_last_second_timestamp_seconds") + " > 0)"})),
		simple(series(head{24, "Logged seconds", "none", "Seconds that the log dealt with, a second: one."},
			query{legend: "{{instance}}", expr: pace("metriclog_seconds_total", "instance")})),
		simple(series(head{25, "Logged rows", "none", "Rows that were written in a second."},
			query{legend: "{{instance}}", expr: pace("metriclog_rows_total", "instance")})),
		colored(quiet(series(head{26, "Log errors and lost seconds", "none", "Attempts to write that failed, and seconds of which rows are missing, a second."},
			query{legend: "errors", expr: "sum(rate(" + own("metriclog_errors_total") + "[$__rate_interval]))"},
			query{legend: "lost seconds", expr: "sum(rate(" + own("metriclog_lost_seconds_total") + "[$__rate_interval]))"})), "errors", "orange", "lost seconds", "red"),
	)
}
