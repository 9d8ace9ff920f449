// Package backfill fills gaps in a database from the metric log, with the same series that the per-second endpoint of package
// prom has.
//
//	gap := backfill.Gap{
//		Searcher: metriclog.Searcher{Dir: "/var/log/shop", App: "shop"},
//		From: began, To: ended,
//	}
//	scan, err := gap.OpenMetrics(ctx, w, labels)                  // for promtool tsdb create-blocks-from openmetrics
//	scan, result, err := gap.RemoteWrite(ctx, push.Options{…}) // for a server that accepts samples out of order
//
// The labels are those that the server adds to scraped series, job and instance at least.
//
// It has the metrics that the log has exactly: calls that passed, were blocked, completed, failed or were occupied, and the
// maximum in flight. It has no response times, because the log has only their average in whole milliseconds. Idle seconds have
// no rows: they are zero if another resource has a row in that second, and the resource had one in the hour before;
// after a minute only the calls that passed are there, as on the endpoint. A second in which all resources were idle has no sample.
package backfill
