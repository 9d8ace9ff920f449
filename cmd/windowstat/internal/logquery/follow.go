package logquery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// followInterval is how often the log is read for new rows.
const followInterval = 250 * time.Millisecond

// follow prints rows as they are logged, each once, until ctx ends. An error is printed once, while it lasts.
func (q *Query) follow(ctx context.Context, write func(iter.Seq[*row]) error) error {
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	query := q.rows()
	// The same error every quarter of a second would hide the rows.
	lastErr, malformed := "", int64(0)
	q.warnAbsent()
	for {
		rows, err := q.Searcher.Search(query)
		if err == nil {
			if err := write(new(wanted).rows(ctx, q, rows)); err != nil {
				return err
			}
			query.After = rows.Position()
			// The lines behind the last row are read again each time.
			q.Malformed(q.stderr, rows.Malformed()-malformed)
			malformed = rows.Malformed()
			err = rows.Err()
		}
		now := ""
		switch {
		case errors.Is(err, fs.ErrNotExist):
			now = q.Searcher.Dir + " is not there; waiting for it"
		case err != nil:
			now = strings.ReplaceAll(err.Error(), "\n", "; ")
		}
		if now != "" && now != lastErr {
			fmt.Fprintf(q.stderr, "windowstat: %s\n", now)
		}
		lastErr = now
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// warnAbsent prints that there is no log yet of the application or process, and which logs there are: the name may be a
// mistake.
func (q *Query) warnAbsent() {
	logs, err := q.Searcher.Logs()
	wanted := func(l metriclog.Log) bool { return len(q.PIDs) == 0 || slices.Contains(q.PIDs, l.PID) }
	if err != nil || q.Searcher.App == "" && len(q.PIDs) == 0 || slices.ContainsFunc(logs, wanted) {
		return
	}
	has := "none"
	if all, err := (metriclog.Searcher{Dir: q.Searcher.Dir}).Logs(); err == nil && len(all) > 0 {
		has = List(all)
	}
	fmt.Fprintf(q.stderr, "windowstat: waiting for a log that is not there yet; in %s there is %s\n", q.Searcher.Dir, has)
}
