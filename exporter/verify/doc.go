// Package verify compares a database with the metric log: the log is the truth, and the database a copy of it.
//
//	gap := verify.Gap{Searcher: metriclog.Searcher{Dir: "/var/log/shop", App: "shop"}, From: began, To: ended}
//	o := verify.Options{URL: "http://prometheus:9090", Labels: map[string]string{"job": "shop-seconds", "instance": "shop:9719"}}
//	report, err := verify.Check(ctx, gap, o)
//	healing, err := verify.Heal(ctx, gap, o, verify.Target{Push: push.Options{URL: "http://prometheus:9090/api/v1/write"}})
//
// It reads the samples of one instance with their own timestamps by the query API of Prometheus, which VictoriaMetrics, Thanos,
// Mimir and others have, and compares them with those that the log has exactly, under the names of the per-second endpoint: calls that
// passed, were blocked, completed, failed or were occupied, and the most in flight. Histograms, response times, the peak, sampled
// series and the sums that a push by OTLP has, which have the time of the end of a second, are not in the log, and are not compared. What is missing can be written, see [Heal]; all of a log, see [Write].
//
// # What counts
//
// A sample is missing if the log has events of the resource in that second and the database has no sample. An idle second has no
// row in the log, and the log does not tell when a process ended: a new one does not know what an earlier one was asked for. So
// the zero of an idle second is missing only if the database lacks that second of all resources, or if it is between two missing
// seconds of the resource. Zeros of the database where the log has no row are right, too.
//
// A sample is different if the values are not equal; it is never overwritten. It is extra if the log has none, or if the database
// has several of one second, or one between two seconds. NaN and stale markers are ignored, as Prometheus does.
//
// # Caveats
//
// Of a process whose log lost rows (windowstat_metriclog_lost_seconds_total) the database has more than the log. Series of two
// instances cannot be told apart if the labels select both: that is an error. Memory is bounded: some ten thousand seconds of
// resources are compared at a time, and a response of more than 32 MiB is asked for in parts.
package verify
