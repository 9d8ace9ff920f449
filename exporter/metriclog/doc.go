// Package metriclog writes every sealed second to disk, in Sentinel's metric log format, so that Sentinel's readers
// can read it and an incident can be looked at when there is no database.
//
//	o := metriclog.Options{Dir: "/var/log/shop", App: "shop"}
//	last, err := metriclog.Last(o)                          // what the process before this one has logged
//	c, err := collector.New(collector.Options{After: last}) // so no second has two values
//	w, err := metriclog.New(c, o)
//	…
//	stop := w.Start()
//	…
//	err = stop() // when nothing is recorded any more: it writes the last second
//
// There is one line for each resource and second in which something happened or was in flight, eleven fields:
//
//	timestamp|date and time|resource|pass|block|success|exception|rt|occupiedPass|concurrency|classification
//	1767323045000|2026-01-02 03:04:05|checkout|100|0|100|10|5|0|1|0
//
// The timestamp is the start of the second in Unix milliseconds; the date is local. success counts all calls that
// ended, failed ones included. rt is their average in whole milliseconds, rounded down, as in Sentinel.
// concurrency is the most that were in flight in the second. classification is always 0. In a name, | and control
// characters are \xHH and a backslash is two; readers of this package undo that. The last row of a second is that of all
// inbound traffic, [collector.InboundTotal], as in Sentinel: leave it out of sums over resources. It is there whenever
// another one is, and so shows that the second is whole.
//
// Files are named app-metrics.log.2026-01-02, then .1, .2 and so on of the same day; dots in the application's name
// become dashes. Each has an index beside it, named with .idx after it: 16 bytes for each second, its Unix time and
// the offset of its first line, both big-endian int64. A file app-metrics.log.lck keeps a second process away.
//
// A second is appended with one write, after it was sealed, and then entered into the index; so every row is final,
// seconds ascend, and a second that is in the index is in the file as a whole. If a write fails, both are cut back to
// where they were and the second is tried again for as long as it can be read, by default ten minutes. A file, index or
// directory that was deleted is made again. What was written of a second when the process died, or is left of it
// after a power cut, is not found by a search, and cut off by the next process; a whole second stays, also if the
// index lacks it.
//
// [Searcher] finds rows by time and resource:
//
//	rows, err := metriclog.Searcher{Dir: "/var/log/shop"}.Search(metriclog.Query{From: time.Now().Add(-5 * time.Minute)})
//	…
//	for row := range rows.All() {
//		fmt.Println(row.Start, row.Resource, row.Pass)
//	}
//
// With [Options.JSON] there is a second log, app-metrics.json.2026-01-02, with a line of JSON for each row: what the
// first has, in flight at the end of the second, the sliding peak, sum, extremes and quantiles of the response times, and
// who called and by which entrance. It has an index of its own, and no reader here.
//
// # Caveats
//
// Without [Options.Sync], what the operating system had not written is lost in a power cut. After the wall clock was set
// back, seconds that the log already holds are not written again, and counted as lost, or as repeated where the Collector
// knows of them; if it was ahead for a while, MaxAge counts from there. Where the system or the file system has no flock, such as Windows, nothing keeps two processes
// from writing to one log. Sentinel's own searcher finds names with a backslash or a | only as they stand in the file.
package metriclog
