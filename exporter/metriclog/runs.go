package metriclog

import (
	"os"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/runs"
)

// openRuns adds this process to the log's file of runs. An error is logged: the seconds are counted all the same.
func (w *Writer) openRuns(last int64) error {
	path, err := w.StateFile("runs.json")
	if err != nil {
		return err
	}
	all, err := w.files.list()
	if err != nil {
		return err
	}
	oldest := last
	for _, s := range all {
		if s.known {
			oldest = min(oldest, s.first)
		}
	}
	own := runs.Run{
		ID: w.stats.RunID(), PID: os.Getpid(), First: w.stats.Timeline().NameFrom(w.first).Unix(), History: int64(w.stats.History() / time.Second),
	}
	if w.runs, err = runs.Open(path, own, oldest, last); err != nil {
		w.logger.Error("the file of runs, which says whose the seconds in the metric log are", "file", path, "err", err)
	}
	return nil
}

// Runs returns the file of the processes that counted the seconds of the log, for package push.
func (w *Writer) Runs() *runs.File { return w.runs }
