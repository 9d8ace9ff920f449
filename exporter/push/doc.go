// Package push sends every sealed second to a server: by Prometheus remote write, to VictoriaMetrics, or by OpenTelemetry's OTLP.
//
//	p, err := push.New(c, push.Options{
//		URL:    "http://prometheus:9090/api/v1/write",
//		Labels: map[string]string{"job": "shop", "instance": hostname},
//	})
//	…
//	stop := p.Start()
//	defer stop() // sends what is left, the open second included
//
// It is for processes that cannot be scraped: short jobs, services behind a firewall. Metrics and values are those of the
// per-second endpoint of package prom, with [Options.Histogram] also the histogram of the response times of each second.
//
// Each second is sent once, and in order in each series. A request whose result is unknown (5xx, a timeout, a broken connection) is sent again
// unchanged, until the server accepts or rejects it. While a server is away, seconds wait in the Collector's history, ten
// minutes by default. Older ones are dropped and counted, unless there is [Options.Log].
//
// # With a metric log
//
// With [Options.Log] the log is the queue. How far the server has the seconds is kept in a state file of the log, one for each
// URL, with the seconds that are about to be sent; it is replaced before a request and after it. The log's file of runs has the labels
// of each process. After
// a restart, kill -9 included, the Pusher first sends what the processes before have logged and not sent, each under the labels
// of its process, then its own seconds, each once. What may have arrived already goes alone, so that a server that refuses it
// refuses nothing else. So a killed process loses what it had not logged yet, a second as a rule. An outage that is longer than
// the history loses nothing that the log still has.
//
// Seconds from the log have the metrics of the log: pass, block, complete, exception, occupied pass and the maximum in flight,
// and nothing of a Sampler. They are sent in requests of up to a minute, with pauses as long as a request takes, and at most
// 100,000 samples a second. What a process logged that did not push to this URL is not sent, because its labels are not known. What the log's retention has deleted, and what the server refuses because it is too old, is counted
// by windowstat_push_lost_seconds_total and logged. When Run ends and the server is away, the rest is left to the next process,
// which is logged and no error.
//
// The first process begins with its own seconds. A URL, a namespace or a way that is new begins anew, too. The state file is not
// synced, as the log is not by default: after a power cut some seconds may be sent again, or a torn file is set aside, which is
// logged, and seconds of earlier processes are not sent. A process that cannot write it goes on pushing; what it sent is then sent
// again by the next one.
//
// # Caveats
//
// At most sixteen requests are on the way at a time, so a server that needs a second for a request takes sixteen times
// [Options].MaxSamples a second; docs/scale.md has the figures. While a request is sent again, the next seconds wait.
//
// Samples that a server rejects are not sent again; windowstat_push_refused_samples_total counts them, and it is logged. So are
// those that it does not take of a request by OTLP that it accepts. If it rejects a request that was sent before as a duplicate or
// out of order, the samples arrived then, or another process has written to the same series: nobody can tell, and
// windowstat_push_unconfirmed_samples_total counts them, not windowstat_push_samples_total. Likewise for a request that got 500
// thirty-one times, and for the last one of a process if it got no response.
//
// VictoriaMetrics has two copies of what is sent again, unless it deduplicates, see docs/seconds.md;
// windowstat_push_resent_samples_total counts these samples.
//
// Without a log the last seconds of a killed process are not sent. With one, what it was about to send is sent again by the next
// process: a Prometheus that has a second keeps it once, and windowstat_push_unconfirmed_samples_total or
// windowstat_push_resent_samples_total count it; VictoriaMetrics stores it twice, as above.
package push
