package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// followInterval is how often the log is read for new rows.
const followInterval = 250 * time.Millisecond

// follow prints rows as they are logged, each once, until ctx ends. An error is printed once, while it lasts.
func (s *search) follow(ctx context.Context, p printer) error {
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	query := s.query
	lastErr, malformed := "", int64(0)
	s.sayAbsent()
	for {
		rows, err := s.Search(query)
		if err == nil {
			if _, err := s.pass(ctx, rows, p.print); err != nil && ctx.Err() == nil {
				return err
			}
			if err := p.flush(); err != nil {
				return err
			}
			query.After = rows.Token()
			// The lines behind the last row are read again each time.
			s.sayMalformed(rows.Malformed() - malformed)
			malformed = rows.Malformed()
			err = rows.Err()
		}
		now := ""
		switch {
		case errors.Is(err, fs.ErrNotExist):
			now = s.Dir + " is not there; waiting for it"
		case err != nil:
			now = oneLine(err).Error()
		}
		if now != "" && now != lastErr {
			fmt.Fprintf(s.stderr, "windowstat: %s\n", now)
		}
		lastErr = now
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// sayAbsent prints that there is no log yet of the application or process, and which logs there are: the name may be a
// mistake.
func (s *search) sayAbsent() {
	logs, err := s.Logs()
	if err != nil || s.App == "" && len(s.pids) == 0 || slices.ContainsFunc(logs, func(l metriclog.Log) bool { return s.ofProcess(l.PID) }) {
		return
	}
	has := "none"
	if all, err := (metriclog.Searcher{Dir: s.Dir}).Logs(); err == nil && len(all) > 0 {
		has = list(all)
	}
	fmt.Fprintf(s.stderr, "windowstat: waiting for a log that is not there yet; in %s there is %s\n", s.Dir, has)
}

// found is how many rows were found, and how many of them were printed.
type found struct{ all, printed int }

// pass hands the rows that are wanted to f, until ctx ends, and closes them.
func (s *search) pass(ctx context.Context, rows *metriclog.Rows, f func(*row) error) (n found, err error) {
	defer rows.Close() //nolint:errcheck // they were only read
	var wanted row
	err = rows.Each(ctx, func(r *metriclog.Row) error {
		n.all++
		if s.where != nil && !s.where(r) {
			return nil
		}
		n.printed++
		wanted.Row, wanted.line = r, rows.Line()
		return f(&wanted)
	})
	return n, err
}
