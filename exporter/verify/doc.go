// Package verify compares a database with the metric log and writes missing samples. The log has every second; the
// database is a copy.
//
//	gap := verify.Gap{Searcher: metriclog.Searcher{Dir: "/var/log/shop", App: "shop"}, From: began, To: ended}
//	o := verify.Options{
//		URL:    "http://prometheus:9090",
//		Labels: map[string]string{"job": "shop-seconds", "instance": "shop:9719"},
//	}
//	report, err := verify.Check(ctx, gap, o)
//	target := verify.Target{Push: push.Options{URL: "http://prometheus:9090/api/v1/write"}}
//	healing, err := verify.Heal(ctx, gap, o, target)
//
// [Check] reads the samples of one instance, with their own timestamps, through the query API of Prometheus, which
// VictoriaMetrics, Thanos and Mimir also have. It compares them with the metrics that the log has exactly, under the
// names of the per-second endpoint: calls that passed, were blocked, completed, failed or were occupied, and the
// maximum in flight. The log does not have histograms, response times, the peak and sampled series. It also lacks the
// sums of an OTLP push, because their timestamp is the end of a second. Check compares none of these. [Heal] also
// writes the missing samples. [Write] writes a whole log and compares nothing. A [Checker] compares every few minutes.
//
// # Findings
//
// A sample is missing if the log has events of the resource in its second and the database has no sample. An idle
// second has no row in the log, and the log does not show when a process ended or which metrics a scraper selected.
// The zero of an idle second is therefore missing only if the database lacks that second of all resources, or if the
// second is between two missing seconds of the resource with events. A zero in the database is correct if the log has
// no row.
//
// A sample is different if the values are not equal. Heal never overwrites it. A sample is extra if the log has no such
// sample, if the database has several samples of one second, or if its timestamp is not a whole second. NaN and stale
// markers are ignored, as in Prometheus.
//
// # Decisions
//
// A log may outlive the labels of its process: pod-1 counts its first seconds, and pod-2 the rest. Heal writes a second
// only under the labels that the process had. The run of a second identifies the process that counted it. The log has
// the run of each second in the row of the total, and the database has it as the metric windowstat_persecond_run.
//
// For each second of the log that the labels of the instance lack in the database, in part or entirely, the first row
// that applies decides. In the table, these labels are the labels of the instance. Reports show the quoted reason with
// the seconds. NAME is the difference between other labels and the labels of the instance, such as instance=pod-2.
//
//	    labels with the second      runs in the log and the database                               verdict
//	 1  these labels                the log has one run, and the database another                  foreign
//	      "these labels have another run in these seconds"
//	 2  any or none                 the user named the run, or 0 for seconds without a run         write
//	 3  any or none                 the log does not have the run of the second                    missing
//	      "the run of these seconds is unknown"
//	 4  these labels                both have the same run                                         write
//	 5  other labels, no replicas   any                                                            elsewhere
//	      "NAME has these seconds"
//	 6  labels that may be replicas any                                                            missing
//	      "NAME has these seconds; whether it is a replica is undecided"
//	 7  none, or replicas           other labels have the last second of the run before it         foreign
//	      "NAME has the seconds before"
//	 8  none, or replicas           no labels have the run before it; others have the first after  foreign
//	      "NAME has the seconds after"
//	 9  none                        no labels have the run; it was pushed under these labels       write
//	10  none                        no labels have the run                                         missing
//	      "no labels have run ID, which counted these seconds"
//	11  none, or replicas           only replicas have the run                                     missing
//	      "these labels have no second of run ID, which counted these seconds"
//	12  none, or replicas           these labels have the run only after it; a later process may   missing
//	                                have forwarded those seconds; no push under these labels
//	      "a later process may have forwarded the seconds that these labels have of run ID"
//	13  none, or replicas           these labels have the run only after it; the run began before  missing
//	                                the range of the queries
//	      "run ID began more than a day before the compared range; the database was not searched that far back"
//	14  none, or replicas           anything else                                                  write
//
// The verdicts are:
//
//	write      The second counts as missing. Heal writes it under the labels.
//	missing    The second counts as missing. Heal does not write it, because it may belong to other labels.
//	elsewhere  Other labels have the second, so the database is right.
//	foreign    The second belongs to other labels, which lack it, or the labels have another process's second.
//
// Replicas are labels that have a run at the same time, as with a pair of Prometheus servers. Each replica is decided
// as if the others did not exist, because each must have all seconds. If the labels of a process change, rows 7 and 8
// give the gap between the old and the new labels to the old labels. If two labels are equally near, neither gets the
// second. Row 12 covers a process that crashes before its first scrape: a later process forwards the end of the log
// under its own labels.
//
// # Caveats
//
// If the log lost rows (windowstat_metriclog_lost_seconds_total), the database has more than the log. If the labels
// select several instances, the instance with the last run of the log is compared; if no single instance has it, the
// error is [ErrSeveralInstances]. Only a day on both sides of the range is searched for runs. Two tenants of one
// database with equal labels are one instance.
//
// Memory is bounded: about ten thousand seconds of resources are compared at a time, and a query whose response has
// more than 32 MiB is divided.
package verify
