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

// StateFile returns the path of a state file in the log's directory. The file's name consists of the application's
// name, a dash and name. StateFile returns an error if it has returned the same name before.
func (w *Writer) StateFile(name string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	path := filepath.Join(w.files.Dir, fileName(w.files.App)+"-"+name)
	if slices.Contains(w.stateFiles, name) {
		return "", fmt.Errorf("metriclog: state file %s is already in use", path)
	}
	w.stateFiles = append(w.stateFiles, name)
	return path, nil
}

// Logged calls f with the rows of the log in the half-open range [from, to) of Unix times, in ascending order, until f
// returns false. Pages and pushes read seconds that have left the Collector's history with it.
//
// A record has only the fields that the log has exactly: Start, Pass, Block, Complete, Exception, OccupiedPass and
// InFlightMax. The record is valid until f returns. Logged omits rows that it cannot read and counts an error.
func (w *Writer) Logged(from, to int64, f func(resource string, m *node.MetricNode) bool) {
	// A search returns complete seconds only, and keeps no file open.
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

// Written returns the end of the written part of the log, in Unix time. The log will get no further rows of earlier
// seconds.
func (w *Writer) Written() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if name, ok := w.stats.Timeline().WallTime(w.next); ok {
		return name.Unix()
	}
	return w.stat.last.Load() + 1
}

// Record returns the row as a record. The fields that the log lacks, or has only in rounded form, are zero: response
// times, the peak, and the calls in flight at the end of the second.
func (r *Row) Record() node.MetricNode {
	return node.MetricNode{
		Start: r.Start,
		Counts: node.Counts{
			Pass: r.Pass, Block: r.Block, Complete: r.Success, Exception: r.Exception, OccupiedPass: r.OccupiedPass,
		},
		InFlightMax: r.Concurrency,
	}
}

// openRuns adds this process to the runs file of the log, before its first second is logged. If it cannot write the
// file, it logs the error, and Flush retries.
func (w *Writer) openRuns() error {
	path, _ := w.StateFile("runs.json") // no error: no other call precedes this one
	all, err := w.files.list()
	if err != nil {
		return err
	}
	oldest, last := w.files.last, w.files.last
	if len(all) > 0 {
		oldest = min(oldest, all[0].first)
	}
	own := runs.Run{
		ID: w.stats.RunID(), PID: os.Getpid(),
		First:   w.stats.Timeline().WallTimeAtOrAfter(w.next).Unix(),
		History: int64(w.stats.History() / time.Second),
	}
	s := Searcher{Dir: w.files.Dir, App: w.files.App}
	w.runs, err = runs.Open(path, own, oldest, last, func(from int64) []runs.Run {
		list, e := s.Runs(time.Unix(from, 0), time.Unix(last, 0), 0)
		if e != nil {
			w.files.Logger.Error("cannot read the runs in the rows of the metric log", "dir", w.files.Dir, "err", e)
		}
		return list
	})
	if err != nil {
		const message = "cannot write the runs file, which maps seconds of the metric log to processes; retrying"
		w.files.Logger.Error(message, "file", path, "err", err)
	}
	return nil
}

// Runs returns the runs in the rows of the log between from and to, in ascending order: their IDs, and the first and
// last second with a row of each. Rows of Sentinel and of older versions have no run. Without pids, Runs reads the rows
// of all processes. It reads all lines of the range, but parses only the names of most.
func (s Searcher) Runs(from, to time.Time, pids ...int) (list []runs.Run, err error) {
	onlyTotal := func(resource string) bool { return resource == collector.InboundTotal }
	rows, err := s.Search(Query{From: from, To: to, PIDs: pids, Match: onlyTotal})
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

// Runs returns the runs of the log. Package push uses it.
func (w *Writer) Runs() *runs.File { return w.runs }
