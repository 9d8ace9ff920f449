// Package push sends every sealed second to a server: by Prometheus remote write, to VictoriaMetrics, or by
// OpenTelemetry's OTLP.
//
//	p, err := push.New(c, push.Options{
//		URL:    "http://prometheus:9090/api/v1/write",
//		Labels: map[string]string{"job": "shop", "instance": hostname},
//	})
//	…
//	stop := p.Start()
//	defer stop() // sends the remaining seconds, including the open one
//
// It is for processes that cannot be scraped: short jobs and services behind a firewall. Metrics and values are the
// same as at the per-second endpoint of package prom. [Options.Histogram] adds the histogram of the response times of
// each second.
//
// [Options.Format] selects the protocol. [RemoteWrite2] also sends metadata and cumulative counters with start
// timestamps, and falls back to [RemoteWrite] if the server does not read it.
//
// Each second is sent once. The seconds of a series are sent in order. A request with an unknown result (5xx, a
// timeout, a broken connection) is resent unchanged until the server accepts or rejects it. While a server is
// unreachable, seconds wait in the Collector's history, ten minutes by default. Older seconds are dropped and counted,
// unless [Options.Log] is set.
//
// # With a metric log
//
// With [Options.Log] the log is the queue. A state file of the log, one for each URL, stores the position up to which
// the server has the seconds, and the end of the seconds that are about to be sent. The Pusher replaces this file
// before and after each batch of requests. The runs file of the log stores the labels of each process.
//
// After a restart, including one after kill -9, the Pusher first sends the seconds that earlier processes logged and
// did not send, each under the labels of its process. Then it sends its own seconds. Each second is sent once. Seconds
// that may have arrived already are sent separately, so a server that refuses them refuses nothing else. A killed
// process therefore loses only seconds that it had not logged yet, usually one. An outage that is longer than the
// history loses no second that the log has.
//
// Seconds from the log have the metrics of the log: pass, block, complete, exception, occupied pass and the maximum in
// flight. They have no series of a Sampler. They are sent in requests of up to a minute, with a pause after each
// request that is as long as the request took, and at most 100,000 samples a second. Seconds of a process that did not
// push to this URL are not sent, because their labels are unknown. Seconds that the log's retention deleted, and
// seconds that the server refuses because they are too old, are counted by windowstat_push_lost_seconds_total and
// logged. If the server is unreachable when Run ends, the next process sends the rest; this is logged and is not an
// error.
//
// The first process begins with its own seconds. A new URL, namespace or format also begins with the seconds of the
// current process. The state file is not synced, like the log by default. After a power cut some seconds may be sent
// again. A torn state file is renamed, which is logged, and seconds of earlier processes are not sent. A process that
// cannot write the file continues to push; the next process then sends the same seconds again.
//
// # Caveats
//
// At most sixteen requests are in progress at a time, so a server that needs a second for a request receives at most
// sixteen times [Options].MaxSamples a second; docs/scale.md has the figures. While a request is resent, the next
// seconds wait.
//
// Samples that a server rejects are not resent. They are counted by windowstat_push_refused_samples_total and logged.
// The same holds for samples that the server drops from an accepted OTLP request, or from a partially stored request of
// remote write 2.0.
//
// If the server rejects a resent request as a duplicate or out of order, either the first attempt arrived, or another
// process wrote to the same series. The two cases look the same, so windowstat_push_unconfirmed_samples_total counts
// the samples, and windowstat_push_samples_total does not. The same holds for a request that received status 500
// thirty-one times, and for the last request of a process if it received no response.
//
// VictoriaMetrics stores two copies of resent samples, unless it deduplicates, see docs/seconds.md.
// windowstat_push_resent_samples_total counts these samples.
//
// Without a log the last seconds of a killed process are not sent. With a log, the next process resends the seconds
// that the killed process was about to send. A Prometheus that already has such a second keeps one copy, and
// windowstat_push_unconfirmed_samples_total or windowstat_push_resent_samples_total counts it. VictoriaMetrics stores
// it twice, as described above.
package push
