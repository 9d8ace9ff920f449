package metriclog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/runs"
	"github.com/windowstat/windowstat/node"
)

// StateFile returns the path for a file that belongs to the log, in its directory: the application's name, a dash and the name.
// It returns each name once; the second time is an error.
func (w *Writer) StateFile(name string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	path := filepath.Join(w.files.Dir, fileName(w.files.App)+"-"+name)
	if slices.Contains(w.stateFiles, name) {
		return "", fmt.Errorf("metriclog: %s is in use", path)
	}
	w.stateFiles = append(w.stateFiles, name)
	return path, nil
}

// Logged calls f with the rows of the log in [from, to), Unix times, ascending by second, until f returns false; it implements
// prom.Log and remote.Log. A record has the fields that the log has exactly: Start, Pass, Block, Complete, Exception,
// OccupiedPass and InFlightMax. It is valid during the call. Rows that cannot be read are left out and counted as an error.
func (w *Writer) Logged(from, to int64, f func(resource string, m *node.MetricNode) bool) {
	// Only what is complete is found, and no file stays open.
	own := Searcher{Dir: w.files.Dir, App: w.files.App}
	rows, err := own.Search(Query{From: time.Unix(from, 0), To: time.Unix(to-1, 0), PIDs: []int{0}})
	if err == nil {
		for row := range rows.All() {
			m := row.Record()
			if !f(strings.ToValidUTF8(row.Resource, "\uFFFD"), &m) {
				break
			}
		}
		err = errors.Join(rows.Err(), rows.Close())
	}
	if err != nil {
		w.stat.errors.Add(1)
		w.files.Logger.Error("cannot read the metric log", "dir", w.files.Dir, "err", err)
	}
}

// Written returns the Unix time before which all seconds are in the log that it will ever have.
func (w *Writer) Written() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if name, ok := w.stats.Timeline().WallTime(w.next); ok {
		return name.Unix()
	}
	return w.stat.last.Load() + 1
}

// Record returns the row as a record. Fields that the log lacks or has only rounded are zero: response times, the peak, and the
// calls in flight at the end.
func (r *Row) Record() node.MetricNode {
	return node.MetricNode{
		Start: r.Start,
		Counts: node.Counts{
			Pass: r.Pass, Block: r.Block, Complete: r.Success, Exception: r.Exception, OccupiedPass: r.OccupiedPass,
		},
		InFlightMax: r.Concurrency,
	}
}

// openRuns adds this process, which has not logged a second yet, to the runs file of the log. It logs an error if the file
// cannot be written; Flush retries that.
func (w *Writer) openRuns() error {
	path, _ := w.StateFile("runs.json") // it is the first one
	all, err := w.files.list()
	if err != nil {
		return err
	}
	oldest, last := w.files.last, w.files.last
	if len(all) > 0 {
		oldest = min(oldest, all[0].first)
	}
	own := runs.Run{
		ID: w.stats.RunID(), PID: os.Getpid(), First: w.stats.Timeline().WallTimeAtOrAfter(w.next).Unix(), History: int64(w.stats.History() / time.Second),
	}
	s := Searcher{Dir: w.files.Dir, App: w.files.App}
	w.runs, err = runs.Open(path, own, oldest, last, func(from int64) []runs.Run {
		list, e := s.Runs(time.Unix(from, 0), time.Unix(last, 0), 0)
		if e != nil {
			w.files.Logger.Error("cannot read the runs of the metric log", "dir", w.files.Dir, "err", e)
		}
		return list
	})
	if err != nil {
		w.files.Logger.Error("cannot save the runs of the metric log; retrying with each second", "file", path, "err", err)
	}
	return nil
}

// Runs returns the runs that rows of the log name, ascending: each with its ID, and its first and last second with a row
// between from and to. It returns no runs for rows of Sentinel and of older versions. If no process ids are given, it
// reads the rows of all processes. It reads all lines of the range; of most it parses only the name.
func (s Searcher) Runs(from, to time.Time, pids ...int) (list []runs.Run, err error) {
	rows, err := s.Search(Query{From: from, To: to, PIDs: pids, Match: func(resource string) bool { return resource == collector.InboundTotal }})
	if err != nil {
		return nil, err
	}
	for row := range rows.All() {
		at := row.Start.Unix()
		switch n := len(list); {
		case row.Run == 0:
		case n > 0 && list[n-1].ID == row.Run:
			list[n-1].Last = at
		case n == 0 || list[n-1].Last < at:
			list = append(list, runs.Run{ID: row.Run, First: at, Last: at})
		}
	}
	return list, errors.Join(rows.Err(), rows.Close())
}

// Runs returns the runs of the log, for package push.
func (w *Writer) Runs() *runs.File { return w.runs }
