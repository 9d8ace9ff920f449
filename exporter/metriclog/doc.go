// Package metriclog writes each sealed second to disk in the format of Sentinel's metric log. Sentinel's tools can read
// the log, and an operator can investigate an incident without a database.
//
//	o := metriclog.Options{Dir: "/var/log/shop", App: "shop"}
//	last, err := metriclog.Last(o)                          // last second of the previous process
//	c, err := collector.New(collector.Options{After: last}) // the new process must not count this second again
//	w, err := metriclog.New(c, o)
//	…
//	stop := w.Start()
//	…
//	err = stop() // after the last call has ended; stop writes the last second
//
// # Lines
//
// Each resource has one line per second, unless it had neither events nor calls in flight; with [Options.ZeroRows] it
// always has one. A line has eleven fields:
//
//	timestamp|date and time|resource|pass|block|success|exception|rt|occupiedPass|concurrency|classification
//	1767323045000|2026-01-02 03:04:05|checkout|100|0|100|10|5|0|1|0
//
// The timestamp is the start of the second in Unix milliseconds. The date and time are local. Success counts all
// completed calls, failed calls included. The field rt holds their average response time in whole milliseconds, rounded
// down, as in Sentinel. Concurrency is a lower bound of the maximum number of calls in flight. Classification is always
// 0. In names, | and control characters are written as \xHH and backslashes are doubled; this package decodes them.
//
// The last line of a second is the total of inbound calls, [collector.InboundTotal], as in Sentinel. Exclude it from
// sums over resources. Every second with lines ends with its total, so the total marks the second as complete. The
// total has a twelfth field, the run: the number of the process that counted the second, see
// [collector.Collector.RunID]. Readers of Sentinel's format ignore this field.
//
// # Files
//
// A log is a sequence of segments, each with an index. A new segment begins at local midnight, and when the current
// segment has [Options.MaxFileSize] bytes. Dots in the application's name become dashes in file names:
//
//	shop-metrics.log.2026-01-02        first segment of the day
//	shop-metrics.log.2026-01-02.idx    index of this segment
//	shop-metrics.log.2026-01-02.1      second segment of the day
//	shop-metrics.log.2026-01-02.1.idx
//	shop-metrics.log.lck               lock file; one process at a time writes the log
//	shop-runs.json                     facts about the runs in the log, see package exporter/internal/runs
//
// An index has a record of 16 bytes for each second: its Unix time and the offset of its first line in the segment,
// both big-endian int64.
//
//	index                       segment
//	+------------+---------+
//	| 1767323045 |       0 | --> 1767323045000|2026-01-02 03:04:05|cart|…
//	+------------+---------+     1767323045000|2026-01-02 03:04:05|checkout|…
//	| 1767323046 |     222 | -+  1767323045000|2026-01-02 03:04:05|__total_inbound_traffic__|…|run
//	+------------+---------+  +> 1767323046000|2026-01-02 03:04:06|checkout|…
//	                             1767323046000|2026-01-02 03:04:06|__total_inbound_traffic__|…|run
//
// The index only speeds up searches. A record counts only if the segment has a line of its second at its offset.
//
// # States of a second
//
//	state     stored in             next state
//	-----     ---------             ----------
//	open      the Collector         sealed, when the second ends
//	sealed    Collector's history   buffered, when Flush reads it; or lost
//	buffered  memory                written, when both files have it; or sealed again, after an error
//	written   segment and index     deleted with its segment, by retention
//	lost      nowhere               none; metriclog_lost_seconds_total counts it
//
// Flush skips seconds without lines. A second is lost as a whole in two cases: the history no longer has the record of
// one of its resources, or the log already has this second or a later one. The history covers ten minutes by default.
//
// Seconds are written as a whole: first their lines in one write, then their index records. Lines are therefore final,
// seconds ascend, and a second with an index record is complete in its segment. If a write fails, both files are
// truncated to their previous sizes. The next [Writer.Flush] retries the second.
//
// # Opening and repair
//
// Before each write, the Writer checks the lock file, the segment and the index on disk. If it does not have exactly
// these files open, or if the size of one has changed, it opens the log again, as a new process does. Deleted files and
// directories are created again. Opening has these steps:
//
//	step                                   fails if
//	----                                   --------
//	1. create the directory, lock the log  the directory is not writable, or another process has the lock
//	2. open the newest segment             it cannot be read and written
//	3. repair the segment and its index    it cannot be read and written
//	4. find the last second of the log     an older segment is unreadable and may have a later second
//
// A crash or a power cut can leave parts of a second, or one of the two files without the other:
//
//	the newest segment has                     searches        repair
//	----------------------                     --------        ------
//	bytes after the last newline               ignore them     truncates the segment
//	a last second without its total            ignore it       truncates the segment
//	complete seconds without an index record   return them     appends the missing records
//	index records at the end without a line    ignore them     truncates the index
//
// # Searches
//
// [Searcher] finds rows by time and resource:
//
//	q := metriclog.Query{From: time.Now().Add(-5 * time.Minute)}
//	rows, err := metriclog.Searcher{Dir: "/var/log/shop"}.Search(q)
//	…
//	for row := range rows.All() {
//		fmt.Println(row.Start, row.Resource, row.Pass)
//	}
//
// # Caveats
//
// Without [Options.Sync], a power cut loses the data that the operating system has not written yet.
//
// After the wall clock was set back, seconds that the log already has are not written again.
// metriclog_lost_seconds_total counts them, or clock_repeated_seconds_total if the Collector detects the repetition. If
// Sentinel logged while its clock was set back, searches return these rows in the order of the files. MaxAge counts
// from the latest second, even if the clock was wrong then.
//
// Some file systems have no locks, for example some network file systems. There, two processes can write one log.
//
// Sentinel's searcher matches escaped names only in their escaped form.
package metriclog
