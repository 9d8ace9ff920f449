package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/runs"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/sentinellog"
	"github.com/windowstat/windowstat/node"
)

// Gap selects a part of a metric log: seconds of one instance that a database may lack. Its methods may be called
// concurrently.
type Gap struct {
	// Searcher finds the log. App is required if the directory has logs of several applications.
	Searcher metriclog.Searcher
	// PIDs are the processes of the instance; all if empty.
	PIDs []int
	// From and To are the first and the last second, both included.
	From, To time.Time
	// Match selects resources by name; nil selects all. Match must be a pure function.
	Match func(resource string) bool
	// Namespace is the prefix of all metric names, windowstat if empty.
	Namespace string
	// StateDir is the state directory of package sentinellog. Set it if the log is a log of Sentinel that a Follower
	// exports. The metrics and the run are then those of the Follower. Without PIDs, the counts of all processes are
	// summed, as by a Follower that adds processes. With PIDs, only the first process is read.
	StateDir string
}

// ErrSeveralProcesses is the error if the log has rows of two processes or applications in one second. Two processes
// are not one instance: their samples would have the same labels.
var ErrSeveralProcesses = errors.New("rows of several processes")

// lookback is the length of the time before the gap that is also read. Its rows show which resources were idle in the
// gap.
const lookback = collector.DefaultRetireAfter

// emit sends the samples of the gap to the sink, together with the run of each second. It sends them in chunks of about
// maxSeconds seconds of resources. After each chunk it calls chunkDone with the first second that the sink does not
// have yet. It skips malformed lines and returns their number.
func (g *Gap) emit(
	ctx context.Context, processes *runs.File, maxSeconds int, sink seconds.Sink,
	chunkDone func(before time.Time) error,
) (malformed int64, err error) {
	filler := g.families().Filler(processes, new(seconds.Selection), g.From.Unix(), maxSeconds, sink)
	match := func(resource string) bool {
		// The Filler needs the rows of the total in any case: they show in which seconds the process ran.
		return g.Match == nil || resource == collector.InboundTotal || g.Match(resource)
	}
	if g.StateDir != "" {
		return 0, g.emitFollowed(ctx, filler, match, chunkDone)
	}
	rows, err := g.Searcher.Search(metriclog.Query{From: g.From.Add(-lookback), To: g.To, PIDs: g.PIDs, Match: match})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	// Rows are sorted by second. Two logs in one second are two processes that ran at the same time.
	var last time.Time
	var log metriclog.Log // of the last row
	err = rows.Each(ctx, func(row *metriclog.Row) error {
		record := row.Record()
		if g.Match != nil && row.Resource == collector.InboundTotal {
			record = node.MetricNode{Start: row.Start} // an empty record; the total is not selected
		}
		if filler.Add(strings.ToValidUTF8(row.Resource, "\uFFFD"), &record) {
			if err := chunkDone(row.Start); err != nil {
				return err
			}
		}
		if row.Start.Before(g.From) {
			return nil
		}
		current := metriclog.Log{App: row.App, PID: row.PID}
		if row.Start.Equal(last) && current != log {
			return fmt.Errorf("%w: %s and %s at %s", ErrSeveralProcesses, log, current, timestamp(last))
		}
		last, log = row.Start, current
		return nil
	})
	if err = errors.Join(err, rows.Err()); err != nil {
		return rows.Malformed(), err
	}
	filler.Flush()
	return rows.Malformed(), chunkDone(g.To.Add(time.Second))
}

// namespace returns the prefix of metric names.
func (g *Gap) namespace() string { return cmp.Or(g.Namespace, table.Namespace) }

// emitFollowed is emit for a log of Sentinel, after the filler was created.
func (g *Gap) emitFollowed(
	ctx context.Context, filler *seconds.Filler, match func(string) bool, chunkDone func(before time.Time) error,
) error {
	log, err := g.followedLog()
	if err != nil {
		return err
	}
	from, to := g.From.Add(-lookback).Unix(), g.To.Unix()+1
	add := func(name string, m *node.MetricNode) error {
		if g.Match != nil && (name == collector.InboundTotal || !match(name)) {
			// An empty total: it is not selected, but shows that the process ran.
			name, m = collector.InboundTotal, &node.MetricNode{Start: m.Start}
		}
		if filler.Add(name, m) {
			if err := chunkDone(m.Start); err != nil {
				return err
			}
		}
		return ctx.Err()
	}
	if err := sentinellog.Rows(g.Searcher.Dir, log, len(g.PIDs) == 0, from, to, add); err != nil {
		return err
	}
	filler.Flush()
	return chunkDone(g.To.Add(time.Second))
}

// followedLog returns the log of the process, without a process ID if no PID is given.
func (g *Gap) followedLog() (log metriclog.Log, err error) {
	logs, err := g.Searcher.Logs()
	if err == nil && len(logs) > 0 {
		log.App = logs[0].App
	}
	if len(g.PIDs) > 0 {
		log.PID = g.PIDs[0]
	}
	return log, err
}

// families returns the metrics of the log.
func (g *Gap) families() *seconds.RowFamilies {
	if g.StateDir != "" {
		return seconds.NewSentinelFamilies(g.namespace())
	}
	return seconds.NewRowFamilies(g.namespace())
}

// metrics returns the names of the metrics of the log.
func (g *Gap) metrics() []string {
	if g.StateDir != "" {
		return seconds.SentinelNames(g.namespace())
	}
	return seconds.Names(g.namespace(), true)
}

// followed returns the run of a log of Sentinel. All its rows belong to one run.
func (g *Gap) followed() (*runs.File, error) {
	log, err := g.followedLog()
	if err != nil {
		return runs.New(nil), err
	}
	run, err := sentinellog.Run(g.StateDir, log)
	if err != nil || run == 0 {
		return runs.New(nil), err
	}
	const end = 1 << 40 // after all seconds
	return runs.New([]runs.Run{{ID: run, PID: log.PID, First: 1, Last: end}}), nil
}

// path returns the path of a file next to the log, or "" if there is no log.
func (g *Gap) path(name string) (string, error) {
	logs, err := g.Searcher.Logs()
	if err != nil || len(logs) == 0 {
		return "", err
	}
	return filepath.Join(g.Searcher.Dir, logs[0].App+"-"+name), nil
}

// runs returns the runs of the log. It merges the runs in the rows of the gap, and of a day before and after it, with
// the file of runs next to the log. The file adds facts to them, and runs that no row has. A log of a single process,
// with its PID in the name, has no file. If the rows or the file cannot be read, runs returns an error and the rest.
func (g *Gap) runs() (*runs.File, error) {
	if g.StateDir != "" {
		return g.followed()
	}
	var list []runs.Run
	path, err := g.path("runs.json")
	if path != "" && len(g.PIDs) == 0 {
		list, err = runs.Read(path)
	}
	begin := g.From.Add(-searchMargin * time.Second)
	rows, rowsErr := g.Searcher.Runs(begin, g.To.Add(searchMargin*time.Second), g.PIDs...)
	first, _, spanErr := g.Searcher.Span(g.PIDs...)
	if len(rows) > 0 && first.Before(begin) {
		rows[0].First = begin.Unix() - 1 // the run may have started before the rows that were read
	}
	return runs.New(runs.Merge(list, rows)), errors.Join(err, rowsErr, spanErr)
}
