package metriclog

import (
	"errors"
	"io"
	"os"
)

// stream reads the rows of one log, file by file.
type stream struct {
	dir, log string
	files    []segment // that were not opened yet
	from, to int64
	after    position // what was read before

	open  *opened
	lines *lines
	began bool

	ready bool // there is a row, the parser's
	parser
	second int64
	wanted bool
	last   *name    // of the last row
	count  position // behind it
	done   position // before it
}

// due is a second before which there is no row of the log; it is known before a file is opened.
func (s *stream) due() int64 {
	switch {
	case s.ready:
		return s.second
	case s.began || len(s.files) == 0 || !s.files[0].known:
		return minSecond
	}
	return max(s.files[0].first, s.from)
}

// advance finds the next row.
func (s *stream) advance(r *Rows) {
	s.ready = false
	for {
		if s.open == nil && !s.next(r) {
			return
		}
		line, err := s.lines.next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				r.errs = append(r.errs, err)
			}
			if err := s.close(); err != nil {
				r.errs = append(r.errs, err)
			}
			continue
		}
		rest, wrong := s.parser.stamp(line)
		second := s.unix
		if wrong != 0 || second < s.open.from || second >= s.open.to {
			r.malformed++
			continue
		}
		if second < s.from || second > s.to {
			continue
		}
		n, counts := r.name(rest, s.last)
		if n == nil || n.wanted && s.counts(counts) != 0 {
			r.malformed++
			continue
		}
		s.last = n
		if second != s.count.Second {
			s.count = position{Second: second}
		}
		s.count.Rows++
		if second == s.after.Second && s.count.Rows <= s.after.Rows {
			continue
		}
		s.parser.row.Resource = n.resource
		s.ready, s.second, s.wanted = true, second, n.wanted
		return
	}
}

// next opens the next file.
func (s *stream) next(r *Rows) bool {
	for len(s.files) > 0 {
		x := s.files[0]
		if x.known && x.first > s.to {
			s.files = nil
			return false
		}
		s.files = s.files[1:]
		open, err := openSegment(s.dir, x, sentinel)
		if err == nil {
			if err = s.begin(open, r); err == nil {
				return true
			}
			err = errors.Join(err, open.Close())
		}
		if !errors.Is(err, os.ErrNotExist) { // then it was the oldest, and its time was up
			r.errs = append(r.errs, err)
		}
	}
	return false
}

// begin begins with a file. The last one may end with a second that is being written; what any other has behind its last
// whole second was cut off.
func (s *stream) begin(open *opened, r *Rows) error {
	end, err := open.finished()
	if err != nil {
		return err
	}
	if len(s.files) > 0 {
		for cut := newLines(open.data, end, open.size, open.size); cut.after < open.size; r.malformed++ {
			if _, err := cut.next(); err != nil && !errors.Is(err, io.EOF) {
				return err
			}
		}
	}
	low, _ := open.place(s.from)
	_, high := open.place(s.to + 1)
	if err := open.closeIndex(); err != nil { // there may be many logs
		return err
	}
	s.open, s.lines = open, newLines(open.data, low, min(high, end), end)
	return nil
}

func (s *stream) close() error {
	if s.open == nil {
		return nil
	}
	err := s.open.Close()
	s.open, s.lines = nil, nil
	return err
}
