package metriclog

import (
	"bufio"
	"errors"
	"io"
)

// maxLine is the longest line that is read; longer ones are none.
const maxLine = 64 << 10

// lines reads a part of a file line by line.
type lines struct {
	r     *bufio.Reader
	to    int64
	began int64 // offset of the last line
	after int64 // and of the one after
}

// newLines reads the lines that begin at from or behind it and before to. At end, the file ends.
func newLines(r io.ReaderAt, from, to, end int64) *lines {
	return &lines{r: bufio.NewReaderSize(io.NewSectionReader(r, from, end-from), maxLine), to: to, after: from}
}

// next returns a line without its newline, empty if it is too long. It is good until the next call. What the file ends
// with is no line without a newline: then, and at the end, the error is io.EOF.
func (l *lines) next() ([]byte, error) {
	l.began = l.after
	if l.began >= l.to {
		return nil, io.EOF
	}
	line, err := l.r.ReadSlice('\n')
	l.after += int64(len(line))
	if err == nil {
		return line[:len(line)-1], nil
	}
	for errors.Is(err, bufio.ErrBufferFull) {
		line, err = l.r.ReadSlice('\n')
		l.after += int64(len(line))
	}
	return nil, err
}
