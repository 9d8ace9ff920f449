// Package metriclog writes every sealed second to disk in Sentinel's metric log format, for Sentinel's tools and for incidents
// without a database.
//
//	o := metriclog.Options{Dir: "/var/log/shop", App: "shop"}
//	last, err := metriclog.Last(o)                          // last second of the previous process
//	c, err := collector.New(collector.Options{After: last}) // so that no second has two values
//	w, err := metriclog.New(c, o)
//	…
//	stop := w.Start()
//	…
//	err = stop() // when nothing is recorded any more: it writes the last second
//
// There is one line for each resource and second with events or calls in flight. It has eleven fields:
//
//	timestamp|date and time|resource|pass|block|success|exception|rt|occupiedPass|concurrency|classification
//	1767323045000|2026-01-02 03:04:05|checkout|100|0|100|10|5|0|1|0
//
// The timestamp is the start of the second in Unix milliseconds; the date is local. success counts all calls that
// ended, failed ones included. rt is their average in whole milliseconds, rounded down, as in Sentinel.
// concurrency is a lower bound of the most calls that were in flight at one instant of the second. classification is always
// 0. In a name, | and control characters are written as \xHH and a backslash as two; this package decodes them. The last row
// of a second is the total of inbound calls, [collector.InboundTotal], as in Sentinel: leave it out of sums over resources.
// Every second with rows has it, so it marks a complete second. It has a twelfth field, the run: the number of the process
// that counted the second, [collector.Collector.RunID]. Readers of Sentinel's format skip it.
//
// Files are named app-metrics.log.2026-01-02, then .1, .2 and so on of the same day; dots in the application's name
// become dashes. Each has an index with the suffix .idx: 16 bytes for each second, its Unix time and the offset of its first
// line, both big-endian int64. The lock file app-metrics.log.lck keeps other processes from writing.
//
// Sealed seconds are appended with one write and then added to the index. So every row is final, seconds ascend, and a
// second in the index is complete in the file. If a write fails, both files are truncated to their previous size, and the
// seconds are retried while they are in the Collector's history, ten minutes by default. A second is not
// written at all, and counted as lost, when the history has lost one of its resources. A deleted file, index or directory is
// made again. A second that a crash or power cut left incomplete is not found by searches, and the next process removes it;
// a complete second stays, even if the index lacks it.
//
// [Searcher] finds rows by time and resource:
//
//	rows, err := metriclog.Searcher{Dir: "/var/log/shop"}.Search(metriclog.Query{From: time.Now().Add(-5 * time.Minute)})
//	…
//	for row := range rows.All() {
//		fmt.Println(row.Start, row.Resource, row.Pass)
//	}
//
// # Caveats
//
// Without [Options.Sync], a power cut loses what the operating system has not written yet. After the wall clock was set
// back, seconds that are in the log already are not written again; they are counted as lost, or as repeated if the Collector
// knows of them. Rows of Sentinel's logs from when its clock was set back come in the order of the files. MaxAge counts from the latest second, even if the clock was ahead then. On a file system without locks, such as some
// network file systems, nothing keeps two processes from writing one log. Sentinel's searcher matches escaped names only
// in their escaped form.
package metriclog
