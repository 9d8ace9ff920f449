package metriclog

import (
	"errors"
	"io"
	"os"
	"slices"
)

// stream reads the rows of one log, or of one of the parts that overlap, file by file.
type stream struct {
	dir string
	*progress
	files    []segment // not opened yet
	from, to int64

	open    *segmentReader
	lines   *lineReader
	started bool

	hasRow bool // the parser has the next row
	parser
	line   []byte
	second int64
	wanted bool
	last   *name // of the last row
}

// minSecond returns a lower bound of the second of the next row; it is known before a file is opened.
func (s *stream) minSecond() int64 {
	switch {
	case s.hasRow:
		return s.second
	case s.started || len(s.files) == 0 || !s.files[0].known:
		return noFrom
	}
	return max(s.files[0].first, s.from)
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
		s.parser.row.Resource = n.resource
		s.hasRow, s.line, s.second, s.wanted = true, line, second, n.wanted
		return
	}
}

// openNext opens the next file. It reports false if there is none.
func (s *stream) openNext(r *Rows) bool {
	for len(s.files) > 0 {
		x := s.files[0]
		if x.known && x.first > s.to {
			s.files = nil
			return false
		}
		s.files = s.files[1:]
		open, err := openSegment(s.dir, x)
		if err == nil {
			if err = s.begin(open, x.ended, r); err == nil {
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
func (s *stream) begin(open *segmentReader, ended bool, r *Rows) error {
	end, err := open.completeEnd(false)
	if err != nil {
		return err
	}
	if ended {
		for cut := newLineReader(open.data, end, open.size, open.size); cut.after < open.size; r.malformed++ {
			if _, err := cut.next(); err != nil && !errors.Is(err, io.EOF) {
				return err
			}
		}
	}
	low, _ := open.bisect(s.from)
	_, high := open.bisect(s.to + 1)
	if err := open.closeIndex(); err != nil { // to limit open files: there may be many logs
		return err
	}
	s.open, s.lines = open, newLineReader(open.data, low, min(high, end), end)
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

// progress is how far a log has been read.
type progress struct {
	log   string
	after position // behind the rows of an earlier search
	at    position // behind the last row
}

// next goes on to a row of a second. It reports false for one that an earlier search has yielded.
func (p *progress) next(second int64) bool {
	at := p.at
	if at.Second != second {
		at = position{Second: second}
	}
	at.Rows++
	p.at = at
	return second != p.after.Second || at.Rows > p.after.Rows
}

// newStreams makes the streams of one log from its files, sorted by their first seconds, without those that end before from.
// There are several where files overlap, as those of a clock that was set back do: in each stream seconds ascend.
func newStreams(dir string, files []segment, from, to int64, at *progress) (streams []*stream) {
	app, pid := parseLogName(at.log)
	var ends []int64 // the last second of each stream
	for i, x := range files {
		end := int64(noTo)
		if _, most := x.span(); most <= from {
			continue
		}
		if x.ended = i+1 < len(files); x.ended {
			if last, err := lastSecond(dir, x); err == nil {
				if end = max(last, x.first); x.known && end < from {
					continue
				}
			}
		}
		n := slices.IndexFunc(ends, func(last int64) bool { return last < x.first })
		if n < 0 {
			n = len(streams)
			s := &stream{dir: dir, progress: at, from: from, to: to}
			s.parser.row.App, s.parser.row.PID = app, pid
			streams, ends = append(streams, s), append(ends, 0)
		}
		streams[n].files, ends[n] = append(streams[n].files, x), end
	}
	return streams
}
