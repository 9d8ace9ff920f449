package metriclog

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/windowstat/windowstat/node"
)

// Archive writes seconds of the past to a log, such as those of a replayed access log: many in one write, and without
// retention, because all of them are old. Seconds are buffered until there are 256 KiB of rows or another day begins. A process that
// ends without [Archive.Close] loses what is buffered, and leaves whole seconds. It must be made with [NewArchive], and is not safe for concurrent use.
type Archive struct {
	files *files
	head  []byte
	rows  []byte // of a second
	err   error  // of the first write that failed; nothing is written after it
}

// NewArchive opens a log to append to it, as [New] does. Options about retention are ignored.
func NewArchive(o Options) (*Archive, error) {
	o.MaxFiles, o.MaxBytes, o.MaxAge = 0, 0, 0
	files, err := o.open()
	if err != nil {
		return nil, err
	}
	files.MaxFiles = 0 // not the default, either: all seconds are older than any limit
	return &Archive{files: files}, nil
}

// Append adds a second, which must be later than all in the log: a row for each resource, that of collector.InboundTotal last.
// Rows are buffered until the next day begins or [Archive.Close] is called. After an error of writing every further Append fails.
func (a *Archive) Append(start time.Time, rows iter.Seq2[string, *node.MetricNode]) error {
	if a.err != nil {
		return a.err
	}
	start = start.In(a.files.Location)
	a.head, a.rows = appendHead(a.head[:0], start), a.rows[:0]
	for resource, m := range rows {
		a.rows = appendLine(a.rows, a.head, resource, m)
	}
	switch err := a.files.append(start, a.rows); {
	case errors.Is(err, errLate):
		return fmt.Errorf("metriclog: the log %s in %s has seconds up to %s already, and cannot take %s",
			a.files.log, a.files.Dir, time.Unix(a.files.end(), 0).In(start.Location()).Format(time.DateTime), start.Format(time.DateTime))
	case err != nil:
		a.err = fmt.Errorf("metriclog: %w", err)
	}
	return a.err
}

// Close writes the buffered rows and closes the files. It does not repeat an error that Append has returned.
func (a *Archive) Close() error {
	err := errors.Join(a.files.flush(), a.files.close())
	if err != nil {
		err = fmt.Errorf("metriclog: %w", err)
	}
	return err
}
