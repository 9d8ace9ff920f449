package metriclog

import (
	"fmt"
	"os"

	"github.com/windowstat/windowstat/exporter/internal/runs"
)

// openRuns adds this process to the log's file of runs. An error is logged: the seconds are counted all the same.
func (w *Writer) openRuns(last int64) error {
	name := "runs.json"
	if _, pid := parseLogName(w.files.log, w.files.kind); pid != 0 { // processes that share a directory must not overwrite each other's
		name = fmt.Sprintf("runs.pid%d.json", pid)
	}
	path, err := w.StateFile(name)
	if err != nil {
		return err
	}
	all, err := segments(w.files.dir, w.files.kind, func(log string) bool { return log == w.files.log })
	if err != nil {
		return err
	}
	oldest := last
	for _, s := range all {
		if s.known {
			oldest = min(oldest, s.first)
		}
	}
	own := runs.Run{ID: w.stats.RunID(), PID: os.Getpid(), First: w.stats.Timeline().NameFrom(w.first).Unix()}
	if w.runs, err = runs.Open(path, own, oldest, last); err != nil {
		w.logger.Error("the file of runs, which says whose the seconds in the metric log are", "file", path, "err", err)
	}
	return nil
}

// Runs returns the file of the processes that counted the seconds of the log.
func (w *Writer) Runs() *runs.File { return w.runs }
