package metriclog

import (
	"errors"
	"io"
	"os"
)

// stream reads the rows of one log, file by file, and holds the next one: so rows of several logs can be put in order by their seconds. It
// opens a file when all rows of the one before are read.
type stream struct {
	dir, log string
	files    []segment // not opened yet
	from, to int64
	after    position // behind the rows of an earlier search
	at       position // behind the last row

	open  *segmentReader
	lines *lineReader

	parser        // has the next row, or before that the second before which there is none
	hasRow bool   // or else all are read
	line   []byte // nil before the first row
	wanted bool
	last   *name // of the last row
}

// advance reads the next row.
func (s *stream) advance(r *Rows) {
	s.hasRow = false
	for {
		if s.open == nil && !s.openNext(r) {
			return
		}
		line, err := s.lines.next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				r.errs = append(r.errs, err)
			}
			r.errs = append(r.errs, s.close())
			continue
		}
		rest, ok := s.parser.stamp(line)
		if !ok || s.unix < s.open.from || s.unix >= s.open.to {
			r.malformed++
			continue
		}
		if s.unix < s.from || s.unix > s.to {
			continue
		}
		// The numbers of a resource that nobody asked for are not parsed.
		n, counts := r.name(rest, s.last)
		if n == nil || n.wanted && !s.counts(counts) {
			r.malformed++
			continue
		}
		s.last = n
		s.parser.row.Resource = n.resource
		s.hasRow, s.line, s.wanted = true, line, n.wanted
		return
	}
}

// openNext opens the next file. It reports false if there is none.
func (s *stream) openNext(r *Rows) bool {
	for len(s.files) > 0 {
		x := s.files[0]
		if x.first > s.to {
			return false
		}
		s.files = s.files[1:]
		open, err := openSegment(s.dir, x)
		if err == nil {
			if err = s.begin(open, r); err == nil {
				return true
			}
			err = errors.Join(err, open.Close())
		}
		if !errors.Is(err, os.ErrNotExist) { // retention deleted it
			r.errs = append(r.errs, err)
		}
	}
	return false
}

// begin starts to read a file. The log's newest may end with a second that is being written; in those that have ended, whatever
// is behind the last complete second counts as malformed.
func (s *stream) begin(open *segmentReader, r *Rows) error {
	end, _, err := open.completeEnd(false)
	if err != nil {
		return err
	}
	if len(s.files) > 0 { // a later one has begun
		for cut := newLineReader(open, end, open.size, open.size); cut.after < open.size; r.malformed++ {
			if _, err := cut.next(); err != nil && !errors.Is(err, io.EOF) {
				return err
			}
		}
	}
	// An index that cannot be read makes the search slower and not wrong, so it is an error to report and none to stop for.
	low, high, err := open.bisect(s.from, s.to)
	r.errs = append(r.errs, err)
	s.open, s.lines = open, newLineReader(open, low, min(high, end), end)
	return nil
}

// close closes the open file, if there is one.
func (s *stream) close() error {
	if s.open == nil {
		return nil
	}
	err := s.open.Close()
	s.open, s.lines = nil, nil
	return err
}

// next goes on to a row of a second. It reports false for one that an earlier search has yielded.
func (s *stream) next(second int64) bool {
	if s.at.second != second {
		s.at = position{second: second}
	}
	s.at.rows++
	return second != s.after.second || s.at.rows > s.after.rows
}
