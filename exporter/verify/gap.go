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
	"github.com/windowstat/windowstat/node"
)

// Gap is a range of seconds of a metric log. It is safe for concurrent use.
type Gap struct {
	// Searcher finds the log. App is required if the directory has logs of several applications.
	Searcher metriclog.Searcher
	// PIDs are the processes of the instance; all if empty.
	PIDs []int
	// From and To are the first and the last second, both included.
	From, To time.Time
	// Match selects resources by name; nil selects all. It must be a pure function.
	Match func(resource string) bool
	// Namespace is the prefix of all names, windowstat if empty.
	Namespace string
}

// ErrProcesses is the error for rows of two processes or applications in one second: they are not one instance, and their samples
// would have the same labels.
var ErrProcesses = errors.New("rows of several processes")

// lookback is how long before the gap rows are read, to find resources that were idle in it.
const lookback = collector.DefaultRetireAfter

// emit gives the sink the samples of the gap, with the run of each second, in parts of about most seconds of resources. After each
// part it calls ended with the second before which the sink has all of them. It returns how many malformed lines were skipped.
func (g *Gap) emit(ctx context.Context, of *runs.File, most int, sink seconds.Sink, ended func(before time.Time) error) (malformed int64, err error) {
	to := seconds.NewFiller(g.namespace(), of, new(seconds.Selection), g.From.Unix(), most, sink)
	rows, err := g.Searcher.Search(metriclog.Query{From: g.From.Add(-lookback), To: g.To, PIDs: g.PIDs, Match: func(resource string) bool {
		return g.Match == nil || resource == collector.InboundTotal || g.Match(resource) // the total shows when the process ran
	}})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var last time.Time
	var log metriclog.Log
	err = rows.Each(ctx, func(row *metriclog.Row) error {
		record := row.Record()
		if g.Match != nil && row.Resource == collector.InboundTotal {
			record = node.MetricNode{Start: row.Start} // the total is not selected
		}
		if to.Add(strings.ToValidUTF8(row.Resource, "\uFFFD"), &record) {
			if err := ended(row.Start); err != nil {
				return err
			}
		}
		if row.Start.Before(g.From) {
			return nil
		}
		of := metriclog.Log{App: row.App, PID: row.PID}
		if row.Start.Equal(last) && of != log {
			return fmt.Errorf("%w: %s and %s at %s", ErrProcesses, log, of, last.Format(time.RFC3339))
		}
		last, log = row.Start, of
		return nil
	})
	if err = errors.Join(err, rows.Err()); err != nil {
		return rows.Malformed(), err
	}
	to.Flush()
	return rows.Malformed(), ended(g.To.Add(time.Second))
}

func (g *Gap) namespace() string { return cmp.Or(g.Namespace, table.Namespace) }

// file is the path of a file beside the log.
func (g *Gap) file(name string) (string, error) {
	logs, err := g.Searcher.Logs()
	if err != nil || len(logs) == 0 {
		return "", err
	}
	return filepath.Join(g.Searcher.Dir, logs[0].App+"-"+name), nil
}

// runs returns the runs of the log: those in the rows of the gap and a day around it, with the facts that the file next to
// the log adds, and those that only the file has. A log of a single process, with its PID in the name, has no file. The error
// says that one of the two could not be read.
func (g *Gap) runs() (*runs.File, error) {
	var list []runs.Run
	path, err := g.file("runs.json")
	if path != "" && len(g.PIDs) == 0 {
		list, err = runs.Read(path)
	}
	begin := g.From.Add(-around * time.Second)
	rows, failed := g.Searcher.Runs(begin, g.To.Add(around*time.Second), g.PIDs...)
	first, _, spanErr := g.Searcher.Span(g.PIDs...)
	if len(rows) > 0 && first.Before(begin) {
		rows[0].First = begin.Unix() - 1 // it may have started before
	}
	return runs.New(runs.Merge(list, rows)), errors.Join(err, failed, spanErr)
}
