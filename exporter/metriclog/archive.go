package metriclog

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/windowstat/windowstat/node"
)

// Archive writes seconds of the past to a log, such as those of an access log that is replayed: many at a time, and
// without retention, since all of them are old. It must be made with [NewArchive], and is for one goroutine.
type Archive struct {
	files *files
	loc   *time.Location
	last  int64
	date  string    // of what is held back
	first time.Time // second of it
	rows  []byte
	marks []mark
}

// enough is how many bytes of rows are written at once.
const enough = 256 << 10

// NewArchive opens a log to append to it, as [New] does. Of the options, those about retention and JSON are not used.
func NewArchive(o Options) (*Archive, error) {
	o.MaxFiles, o.MaxBytes, o.MaxAge, o.JSON = 0, 0, 0, false
	o.defaults()
	o.MaxFiles = 0
	if err := o.check(); err != nil {
		return nil, err
	}
	a := &Archive{files: o.files(sentinel), loc: o.Location}
	var err error
	if a.last, err = a.files.resume(); err != nil {
		return nil, errors.Join(fmt.Errorf("metriclog: %w", err), a.files.close())
	}
	return a, nil
}

// Last is the last second that the log holds, the zero Time if there is none.
func (a *Archive) Last() time.Time {
	if a.last == 0 {
		return time.Time{}
	}
	return time.Unix(a.last, 0)
}

// Append adds a second, which must be after all that the log has: a row for each resource, the one of
// collector.InboundTotal last. What it holds back is written before the next day begins, and by Close. After an error
// nothing more can be appended.
func (a *Archive) Append(start time.Time, rows iter.Seq2[string, *node.MetricNode]) error {
	start = start.In(a.loc)
	if second := start.Unix(); second <= a.last {
		return fmt.Errorf("metriclog: the log %s in %s has seconds up to %s already, and cannot take %s",
			a.files.log, a.files.dir, time.Unix(a.last, 0).In(a.loc).Format(time.DateTime), start.Format(time.DateTime))
	}
	if date := start.Format(time.DateOnly); date != a.date || len(a.rows) >= enough {
		if err := a.flush(); err != nil {
			return err
		}
		a.date, a.first = date, start
	}
	a.marks = append(a.marks, mark{start.Unix(), int64(len(a.rows))})
	head := head(start)
	for resource, m := range rows {
		a.rows = appendLine(a.rows, head, resource, m)
	}
	a.last = start.Unix()
	return nil
}

// flush writes what is held back.
func (a *Archive) flush() error {
	if len(a.marks) == 0 {
		return nil
	}
	if err := a.files.appendAll(a.first, a.rows, a.marks); err != nil {
		return fmt.Errorf("metriclog: %w", err)
	}
	a.rows, a.marks = a.rows[:0], a.marks[:0]
	return nil
}

// Close writes what is held back, and closes the files.
func (a *Archive) Close() error { return errors.Join(a.flush(), a.files.close()) }
