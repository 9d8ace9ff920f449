// Package sentinellog exports the metric logs of Alibaba Sentinel. A [Follower] reads the logs of a directory, for
// Java, Go and C++, while Sentinel writes them. It is the source of a per-second page and of pushes, which contain
// every second of every resource with the numbers of the log. Nothing is counted again.
//
//	c, err := collector.New(collector.Options{}) // the clock, and metrics about the Follower; it counts nothing
//	…
//	f, err := sentinellog.New(c, sentinellog.Options{Dir: "/var/log/csp", StateDir: "/var/lib/windowstat"})
//	…
//	page, err := f.Seconds(prom.SecondsOptions{})
//	http.Handle("GET /metrics/seconds", page)
//	err = f.Run(ctx)
//
// Most programs set the option Sentinel of package exporter instead, or run windowstat sentinel.
//
// # Metrics
//
// A row becomes windowstat_persecond_pass, _block, _complete (Sentinel's success), _exception, _occupied_pass,
// _in_flight_max and _rt_avg_seconds, with the timestamp of its second. The row of all inbound traffic gets the same
// metrics under windowstat_persecond_inbound_, without the label resource. A number that the log does not have is
// absent: response times without a completed call, and calls in flight in logs of Java. The average response time is in
// whole milliseconds, rounded down. There are no quantiles.
//
// Idle seconds have no row. A second of a resource counts as zero if its process has another row in this second, and if
// the resource had a row in the hour before. Rows of other processes prove nothing. After a minute of idleness only the
// passes are exported.
//
// # Processes
//
// The labels app and pid are from the name of the file. By default a process is one instance. Sentinel writes the
// process ID only if it is configured to; otherwise all processes of an application in a directory share a log, and
// rows of one second and resource are added. [Options].Sum adds the processes with IDs, too.
//
// # Late rows
//
// A second is exported [Options].Lag after its end. If a process writes rows later than that, it gets a delay: its
// seconds are exported as much later. All rows are exported once and in order, up to an hour late, and no other process
// waits. A row that is written after a later row of the same process was exported is lost. A delay does not decrease
// until the process ends. With Sum, late rows are lost, because a second that was sent does not change. Lost rows are
// counted.
//
// # Restarts and outages
//
// The state directory holds the positions of the page and of pushes, and the delays and the last rows of processes. It
// is written every second, before consumers see further seconds. The next Follower therefore continues exactly, also
// after a kill. A consumer that was away for up to [Options].Keep gets all seconds that the log still has: the last ten
// minutes from memory, and older ones from the files.
//
// # Cost
//
// Each row is read once, and takes 4 to 10 bytes in memory, for ten minutes. A consumer that catches up gets blocks of
// ten minutes from the files. The memory for rows is bounded by [Options].MaxBytes, without
// these blocks and without the names of the resources, of which a process has at most 20,000. Rows of more resources
// are lost.
//
// # Limitations
//
// Sentinel deletes old files, by default with more than 6 or 8 files of 50 MB. If it deletes seconds before a consumer
// has received them, they are lost, and not counted. Names that contain a backslash twice lose one of them. After a
// power cut the state may be some seconds old; rows that were exported in these seconds may then be exported again.
package sentinellog
