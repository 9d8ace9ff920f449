package metriclog

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Log is one log: the files that one process writes, identified by their names.
type Log struct {
	App string // as in file names, with dashes for dots
	PID int    // 0 if the names have none
}

// String is the log's name in file names: shop, or shop.pid12.
func (l Log) String() string {
	if l.PID == 0 {
		return l.App
	}
	return l.App + ".pid" + strconv.Itoa(l.PID)
}

// Logs returns the logs that the Searcher reads, sorted by name. The error says that the directory cannot be read.
func (s Searcher) Logs() ([]Log, error) {
	all, err := segmentsByName(s.Dir, s.wanted(nil))
	if err != nil {
		return nil, fmt.Errorf("metriclog: %w", err)
	}
	var logs []Log
	for _, x := range all {
		app, pid := parseLogName(x.log)
		if log := (Log{app, pid}); !slices.Contains(logs, log) {
			logs = append(logs, log)
		}
	}
	slices.SortFunc(logs, func(a, b Log) int { return cmp.Or(strings.Compare(a.App, b.App), a.PID-b.PID) })
	return logs, nil
}

// Span returns the first and the last second of the logs of these processes, all if there are none: zero Times if nothing is
// logged. It reads the ends of files only. Files that cannot be read are left out; the error says that the directory cannot be.
func (s Searcher) Span(pids ...int) (first, last time.Time, err error) {
	all, err := segments(s.Dir, s.wanted(pids))
	if err != nil {
		return first, last, fmt.Errorf("metriclog: %w", err)
	}
	for _, x := range all {
		if !x.known {
			continue
		}
		if at := time.Unix(x.first, 0).UTC(); first.IsZero() || at.Before(first) {
			first = at
		}
		if second, err := lastSecond(s.Dir, x); err == nil && second > 0 && second > last.Unix() {
			last = time.Unix(second, 0).UTC()
		}
	}
	return first, last, nil
}
