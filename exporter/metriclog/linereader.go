package metriclog

import (
	"bytes"
	"io"
)

// maxLine is the longest line, with its newline; longer ones are skipped.
const maxLine = 64 << 10

// lineReader reads a part of a file line by line. It does less work for each line than a bufio.Reader.
type lineReader struct {
	r     io.ReaderAt
	to    int64
	end   int64 // of the file
	began int64 // offset of the last line
	after int64 // offset of the next line
	buf   []byte
	rest  []byte // the part of buf that was not returned
}

// newLineReader reads the lines that begin in [from, to). The file ends at end.
func newLineReader(r io.ReaderAt, from, to, end int64) *lineReader {
	return &lineReader{r: r, to: to, end: end, after: from}
}

// next returns a line without its newline, empty if it is too long. The line is valid until the next call. Bytes without a
// newline at the end of the file are not a line: the error is io.EOF then, as at the end.
func (l *lineReader) next() (line []byte, err error) {
	l.began = l.after
	if l.began >= l.to {
		return nil, io.EOF
	}
	for long := false; ; {
		if i := bytes.IndexByte(l.rest, '\n'); i >= 0 {
			line, l.rest = l.rest[:i], l.rest[i+1:]
			l.after += int64(i + 1)
			if long {
				line = nil
			}
			return line, nil
		}
		if len(l.rest) == maxLine {
			l.after += maxLine
			l.rest, long = nil, true
		}
		if err := l.read(); err != nil {
			l.after += int64(len(l.rest))
			l.rest = nil
			return nil, err
		}
	}
}

// read reads more, behind what was not returned yet.
func (l *lineReader) read() error {
	if l.buf == nil {
		l.buf = make([]byte, maxLine)
	}
	n := copy(l.buf, l.rest)
	at := l.after + int64(n)
	more, err := l.r.ReadAt(l.buf[n:n+int(min(maxLine-int64(n), l.end-at))], at)
	l.rest = l.buf[:n+more]
	switch {
	case more > 0:
		return nil // an error is returned by the next read
	case err == nil:
		return io.EOF // at the end
	}
	return err
}
