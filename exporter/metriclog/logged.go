package metriclog

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/windowstat/windowstat/node"
)

// StateFile is the path for a file that belongs to the log, in its directory: the application's name, a dash and the name.
// Each name is given away once; the second time it is an error.
func (w *Writer) StateFile(name string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	path := filepath.Join(w.files.dir, w.app+"-"+name)
	if slices.Contains(w.given, name) {
		return "", fmt.Errorf("metriclog: %s has another user; a log serves one per-second page", path)
	}
	w.given = append(w.given, name)
	return path, nil
}

// Logged calls f for the rows of the seconds from from to before to, Unix times, that were in the log when the Writer was
// made, ascending by second, until f returns false; it implements prom.Log. Of a record there is what the log has
// without a loss: the Start, Pass, Block, Complete, Exception, OccupiedPass and InFlightMax. The record is f's for the
// call. What cannot be read is left out, and counted with the errors.
func (w *Writer) Logged(from, to int64, f func(resource string, m *node.MetricNode) bool) {
	rows, err := w.search(from, min(to, w.began())-1)
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
		w.logger.Error("metric log cannot be read", "dir", w.files.dir, "err", err)
	}
}

// search finds rows in this log; both ends are included.
func (w *Writer) search(from, to int64) (*Rows, error) {
	return search(w.files.dir, func(log string) bool { return log == w.files.log }, from, to, Query{})
}

// began is the Unix time of the first second of this process.
func (w *Writer) began() int64 {
	name, _ := w.stats.Timeline().Name(w.first)
	return name.Unix()
}

// Record is what a row says of its second. The rest of the record is zero: the row has the response times only rounded, and
// neither the peak nor what was in flight at the end.
func (r *Row) Record() node.MetricNode {
	return node.MetricNode{
		Start: r.Start,
		Counts: node.Counts{
			Pass: r.Pass, Block: r.Block, Complete: r.Success, Exception: r.Exception, OccupiedPass: r.OccupiedPass,
		},
		InFlightMax: r.Concurrency,
	}
}
