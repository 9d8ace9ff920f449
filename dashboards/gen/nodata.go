package main

import "github.com/grafana/grafana-foundation-sdk/go/dashboard"

// The texts of panels without data. A text names all possible reasons, because Grafana cannot distinguish an idle
// service from a source that never has the metric, such as Sentinel's metric log. Every [head] has a text.

// blank shows nothing for a missing value. Without blank, Grafana shows the text of an empty panel in each cell without
// a value, and in the tooltip of a line with a gap.
var blank = []dashboard.DynamicConfigValue{{Id: "noValue", Value: ""}}

// Texts of graphs and tables.
const (
	noTotals    = "No data: /metrics is not scraped, or the source has no totals. Sentinel's metric log has none."
	noShare     = "No data: no calls, or the source has no totals. Sentinel's metric log has none."
	noSeconds   = "No data: no calls in the time shown, or the per-second endpoint is not scraped."
	noSliding   = "No data: no calls, or the source has no sliding seconds. Sentinel's metric log has none."
	noQuantiles = "No data: no call ended, or the source has no quantiles. Sentinel's metric log has none."
	noSlowest   = "No data: no call ended, or the source has only averages. Sentinel's metric log has no others."
	noCompleted = "No data: no call ended, or the per-second endpoint is not scraped."
	noInFlight  = "No data: the source does not measure calls in flight. Sentinel's metric log has no averages of them."
	noMaximum   = "No data: no call began, or the source does not measure calls in flight. Sentinel for Java does not."
	noOldest    = "No data: no call is in flight, or the source does not measure ages. Sentinel's metric log has none."
	noOrigins   = "No origins: they need --metrics.by=origin, or the option By, on the page of counters."
)

// Texts of figures are short, because figures have little space.
const (
	noTotalsFigure    = "no totals"
	noShareFigure     = "no calls or no totals"
	noSecondsFigure   = "no seconds"
	noSlidingFigure   = "no sliding seconds"
	noQuantilesFigure = "no calls or no quantiles"
	noSlowestFigure   = "no calls or only averages"
	noInFlightFigure  = "not measured"
	noMaximumFigure   = "no calls or not measured"
	noLimitFigure     = "no limit"
)

// Texts of the dashboard of windowstat itself.
const (
	noTarget        = "No data: /metrics is not scraped."
	noTargetFigure  = "not scraped"
	noScrape        = "No scrapes."
	noScrapeFigure  = "no scrapes"
	noScraper       = "No scrapers with a cursor."
	noScraperFigure = "no scrapers"
	noWay           = "No scrapers with a cursor, and no pushes."
	noPush          = "No pushes."
	noLog           = "No metric log."
	noCheck         = "No comparison with a database."
	noProcess       = "No metrics of the process. client_golang has them."
	noSampler       = "No sampler."
	noFile          = "No file of limits."
)
