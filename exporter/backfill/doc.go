// Package backfill fills the gaps that outages leave in a database, from the metric log: with samples that are, label for
// label, those of the per-second page, see package prom.
//
//	gap := backfill.Gap{
//		Searcher: metriclog.Searcher{Dir: "/var/log/shop", App: "shop"},
//		From: began, To: ended,
//	}
//	scan, err := gap.OpenMetrics(ctx, w, labels)                  // for promtool tsdb create-blocks-from openmetrics
//	scan, result, err := gap.RemoteWrite(ctx, remote.Options{…}) // for a server that takes samples out of order
//
// Labels are those that the scraped series have besides their own: job and instance at least.
//
// There are samples of the metrics that the log has without a loss: of calls that passed, were blocked, completed, failed
// or were occupied, and of the most that were in flight. Response times are not among them: the log has their average in
// whole milliseconds. The log has no rows of idle seconds: they are zero for a resource that had a row in the hour before,
// if anything else has one in that second. A second in which all resources were idle has no sample.
package backfill
