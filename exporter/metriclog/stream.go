package metriclog

import (
	"errors"
	"io"
	"os"
)

// stream reads the rows of one log, segment by segment, and holds the next row, so [Rows] can merge the logs by second.
//
//	state     hasRow  line  unix                               next state
//	-----     ------  ----  ----                               ----------
//	unopened  true    nil   lower bound for the first row      holding or done, by advance
//	holding   true    set   second of the row in parser.row    holding or done, by advance
//	done      false   any   unused
type stream struct {
	dir, log string
	pending  []segment // unopened segments
	from, to int64     // first and last second to return, inclusive
	after    position  // last row of an earlier search
	at       position  // last row returned

	reader *segmentReader // open segment; nil if none is open
	lines  *lineReader

	parser          // with the next row
	hasRow   bool   // see the table
	line     []byte // line of the next row
	selected bool   // the next row's resource matches
	lastName *name  // name in the next row, see Rows.lookupName
}

// advance reads the next row into s.
func (s *stream) advance(r *Rows) {
	s.hasRow = false
	for {
		if s.reader == nil && !s.openNext(r) {
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
		rest, ok := s.parser.parseHead(line)
		if !ok || s.unix < s.reader.from || s.unix >= s.reader.to {
			r.malformed++
			continue
		}
		if s.unix < s.from || s.unix > s.to {
			continue
		}
		// Skip the numbers if the resource does not match.
		n, counts := r.lookupName(rest, s.lastName)
		if n == nil || n.selected && !s.parseCounts(counts) {
			r.malformed++
			continue
		}
		s.lastName = n
		s.parser.row.Resource = n.resource
		s.hasRow, s.line, s.selected = true, line, n.selected
		return
	}
}

// openNext opens the next segment. It returns false if no segment remains.
func (s *stream) openNext(r *Rows) bool {
	for len(s.pending) > 0 {
		x := s.pending[0]
		if x.first > s.to {
			return false
		}
		s.pending = s.pending[1:]
		open, err := openSegment(s.dir, x)
		if err == nil {
			if err = s.startReading(open, r); err == nil {
				return true
			}
			err = errors.Join(err, open.Close())
		}
		if !errors.Is(err, os.ErrNotExist) { // otherwise retention has deleted it
			r.errs = append(r.errs, err)
		}
	}
	return false
}

// startReading prepares reading of a segment. It ignores the lines after the last complete second. In the newest
// segment of a log, a Writer may be writing them. In all other segments, they count as malformed.
func (s *stream) startReading(open *segmentReader, r *Rows) error {
	end, _, err := open.completeEnd(false)
	if err != nil {
		return err
	}
	if len(s.pending) > 0 { // the segment is not the newest
		for cut := newLineReader(open, end, open.size, open.size); cut.nextStart < open.size; r.malformed++ {
			if _, err := cut.next(); err != nil && !errors.Is(err, io.EOF) {
				return err
			}
		}
	}
	// Report an unreadable index, but continue: without it, the search is slower, and its result is the same.
	low, high, err := open.bisect(s.from, s.to)
	r.errs = append(r.errs, err)
	s.reader, s.lines = open, newLineReader(open, low, min(high, end), end)
	return nil
}

// close closes the open segment, if any.
func (s *stream) close() error {
	if s.reader == nil {
		return nil
	}
	err := s.reader.Close()
	s.reader, s.lines = nil, nil
	return err
}

// advancePosition moves s.at past a row of the second. It returns false if an earlier search has returned the row.
func (s *stream) advancePosition(second int64) bool {
	if s.at.second != second {
		s.at = position{second: second}
	}
	s.at.rows++
	return second != s.after.second || s.at.rows > s.after.rows
}
