package metriclog

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/windowstat/windowstat/node"
)

// Archive writes seconds of the past to a log, such as those of a replayed access log: many in one write, and without
// retention, because all of them are old. It must be made with [NewArchive], and is not safe for concurrent use.
type Archive struct {
	files *files
	loc   *time.Location
	last  int64
	first time.Time // first buffered second
	ends  int64     // Unix time of the end of its day
	head  []byte
	rows  []byte
	marks []mark
	err   error // of the first write that failed; nothing is written after it
}

// NewArchive opens a log to append to it, as [New] does. Options about retention are ignored.
func NewArchive(o Options) (*Archive, error) {
	o.MaxFiles, o.MaxBytes, o.MaxAge = 0, 0, 0
	o.defaults()
	o.MaxFiles = 0
	if err := o.check(); err != nil {
		return nil, err
	}
	a := &Archive{files: o.files(), loc: o.Location}
	var err error
	if a.last, err = a.files.resume(); err != nil {
		return nil, errors.Join(fmt.Errorf("metriclog: %w", err), a.files.close())
	}
	return a, nil
}

// Append adds a second, which must be later than all in the log: a row for each resource, that of collector.InboundTotal last.
// Rows are buffered until the next day begins or [Archive.Close] is called. After an error every further Append fails.
func (a *Archive) Append(start time.Time, rows iter.Seq2[string, *node.MetricNode]) error {
	if a.err != nil {
		return a.err
	}
	start = start.In(a.loc)
	if second := start.Unix(); second <= a.last {
		return fmt.Errorf("metriclog: the log %s in %s has seconds up to %s already, and cannot take %s",
			a.files.log, a.files.dir, time.Unix(a.last, 0).In(a.loc).Format(time.DateTime), start.Format(time.DateTime))
	}
	if start.Unix() >= a.ends || len(a.rows) >= flushSize {
		if err := a.flush(); err != nil {
			return err
		}
		year, month, day := start.Date()
		a.first, a.ends = start, time.Date(year, month, day+1, 0, 0, 0, 0, a.loc).Unix()
	}
	a.marks = append(a.marks, mark{start.Unix(), int64(len(a.rows))})
	a.head = appendHead(a.head[:0], start)
	for resource, m := range rows {
		a.rows = appendLine(a.rows, a.head, resource, m)
	}
	a.last = start.Unix()
	return nil
}

// flush writes the buffered rows.
func (a *Archive) flush() error {
	if len(a.marks) == 0 || a.err != nil {
		return a.err
	}
	if err := a.files.appendAll(a.first, a.rows, a.marks); err != nil {
		a.err = fmt.Errorf("metriclog: %w", err)
	}
	a.rows, a.marks = a.rows[:0], a.marks[:0]
	return a.err
}

// Close writes the buffered rows and closes the files. It does not repeat an error that Append has returned.
func (a *Archive) Close() error {
	var err error
	if a.err == nil {
		err = a.flush()
	}
	return errors.Join(err, a.files.close())
}
