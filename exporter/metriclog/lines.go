package metriclog

import (
	"bytes"
	"io"
)

// maxLine is the longest line that is read, with its newline; longer ones are none.
const maxLine = 64 << 10

// lines reads a part of a file line by line. It does less for a line than a bufio.Reader.
type lines struct {
	r     io.ReaderAt
	to    int64
	end   int64 // of the file
	began int64 // offset of the last line
	after int64 // and of the one after
	buf   []byte
	rest  []byte // the part of buf that was not returned
}

// newLines reads the lines that begin at from or behind it and before to. At end, the file ends.
func newLines(r io.ReaderAt, from, to, end int64) *lines {
	return &lines{r: r, to: to, end: end, after: from}
}

// next returns a line without its newline, empty if it is too long. It is good until the next call. What the file ends
// with is no line without a newline: then, and at the end, the error is io.EOF.
func (l *lines) next() (line []byte, err error) {
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

// read reads on, behind what was not returned.
func (l *lines) read() error {
	if l.buf == nil {
		l.buf = make([]byte, maxLine)
	}
	n := copy(l.buf, l.rest)
	at := l.after + int64(n)
	more, err := l.r.ReadAt(l.buf[n:n+int(min(maxLine-int64(n), l.end-at))], at)
	l.rest = l.buf[:n+more]
	switch {
	case more > 0:
		return nil // an error comes again
	case err == nil:
		return io.EOF // nothing was asked for
	}
	return err
}
