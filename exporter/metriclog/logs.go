package metriclog

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Log is what one process writes, one after the other, by what the names of its files say.
type Log struct {
	App string // as it stands in the names of files: dots in it are dashes
	PID int    // 0 if there is none in the names
}

// String is as in the names of files: shop, or shop.pid12.
func (l Log) String() string {
	if l.PID == 0 {
		return l.App
	}
	return l.App + ".pid" + strconv.Itoa(l.PID)
}

// Logs are those that are searched, by name. The error says that the directory cannot be read.
func (s Searcher) Logs() ([]Log, error) {
	var logs []Log
	entries, err := os.ReadDir(s.Dir)
	if err != nil {
		return nil, fmt.Errorf("metriclog: %w", err)
	}
	for _, e := range entries {
		x, ok := parseSegment(e.Name(), sentinel.kind)
		if !ok || !e.Type().IsRegular() {
			continue
		}
		app, pid := parseLogName(x.log, sentinel.kind)
		if log := (Log{app, pid}); (s.App == "" || app == fileName(s.App)) && !slices.Contains(logs, log) {
			logs = append(logs, log)
		}
	}
	slices.SortFunc(logs, func(a, b Log) int { return cmp.Or(strings.Compare(a.App, b.App), a.PID-b.PID) })
	return logs, nil
}

// AppendLine appends the row as a line of the log, with the date in a time zone; see the package's comment.
func (r *Row) AppendLine(b []byte, loc *time.Location) []byte {
	b = appendHead(b, r.Start.In(loc))
	b = appendName(b, r.Resource)
	for _, v := range [...]int64{
		r.Pass, r.Block, r.Success, r.Exception, r.RT.Milliseconds(), r.OccupiedPass, r.Concurrency,
	} {
		b = append(b, '|')
		b = strconv.AppendInt(b, v, 10)
	}
	return append(b, "|0\n"...)
}
