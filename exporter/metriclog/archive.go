package metriclog

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/windowstat/windowstat/node"
)

// Archive writes seconds of the past to a log, such as the seconds of a replayed access log. It writes many seconds in
// one write, and never deletes old files: all of its seconds are old. Create an Archive with [NewArchive]. An Archive
// is not safe for concurrent use.
//
//	state    Append                                      Close
//	-----    ------                                      -----
//	open     buffers a second, writes older ones         writes the buffered seconds, closes the files
//	failed   returns the error of the failed write       closes the files
//
// Append writes buffered seconds when they have 256 KiB of rows, and before a second of another day. A failed write
// loses the buffered seconds. If the process ends without [Archive.Close], the buffered seconds are lost, too. The log
// never has a part of a second.
type Archive struct {
	files *files
	head  []byte // first two fields of this second's lines
	rows  []byte // of the second that Append adds
	err   error  // first failed write; nothing is written after it
}

// NewArchive opens the log to append to it, as [New] does. It ignores the options for retention.
func NewArchive(o Options) (*Archive, error) {
	o.MaxFiles, o.MaxBytes, o.MaxAge = 0, 0, 0
	files, err := o.open()
	if err != nil {
		return nil, err
	}
	files.MaxFiles = 0 // open has set the default
	return &Archive{files: files}, nil
}

// Append adds a second with one row for each resource and the row of collector.InboundTotal last. The second must be
// later than all seconds in the log. Append buffers the rows; a later Append or [Archive.Close] writes them. After a
// failed write, every further Append returns the same error.
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
	case errors.Is(err, errOutOfOrder):
		last := time.Unix(a.files.newest(), 0).In(start.Location())
		return fmt.Errorf("metriclog: the log %s in %s has seconds up to %s already; cannot append %s",
			a.files.log, a.files.Dir, last.Format(time.DateTime), start.Format(time.DateTime))
	case err != nil:
		a.err = fmt.Errorf("metriclog: %w", err)
	}
	return a.err
}

// Close writes the buffered rows and closes the files. It omits errors that Append has returned.
func (a *Archive) Close() error {
	err := errors.Join(a.files.flush(), a.files.close())
	if err != nil {
		err = fmt.Errorf("metriclog: %w", err)
	}
	return err
}
