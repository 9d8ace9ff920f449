package replay

import (
	"bytes"
	"errors"
	"io"
	"time"
)

const (
	// blockSize is how much of a log is read at a time.
	blockSize = 256 << 10
	// maxLine is the length of the longest line that is read.
	maxLine = 1 << 20
)

// block is a piece of a log: whole lines, each with its newline except the last line of the log.
type block struct {
	data []byte
	long int       // lines before it that were too long, and skipped
	upTo time.Time // of a log that grows: all lines written before were returned

	truncated bool  // the log was truncated behind it
	cut       int64 // bytes that were there then, and could not be read any more
}

// blocks reads a log block by block, each into a new buffer if free has none.
type blocks struct {
	r    io.Reader
	rest []byte // the beginning of the next line
	skip bool   // the rest of the line is too long
	end  error
}

// next reads a block into buf, which it may grow. At the end the error is io.EOF.
func (b *blocks) next(buf []byte) (block, error) {
	var x block
	if b.end != nil {
		return x, b.end
	}
	x.data = append(buf[:0], b.rest...)
	b.rest = b.rest[:0]
	for {
		n := len(x.data)
		if n == cap(x.data) {
			x.data = append(x.data, make([]byte, max(blockSize, n))...)[:n]
		}
		got, err := b.r.Read(x.data[n:cap(x.data)])
		x.data = x.data[:n+got]
		if b.skip {
			i := bytes.IndexByte(x.data[n:], '\n')
			if i < 0 {
				x.data = x.data[:n]
			} else {
				x.data = append(x.data[:n], x.data[n+i+1:]...)
				b.skip = false
			}
		}
		if err != nil {
			b.end = err
			if len(x.data) == 0 && x.long == 0 {
				return x, err
			}
			if !errors.Is(err, io.EOF) {
				x.data = x.data[:bytes.LastIndexByte(x.data, '\n')+1] // the last line may be torn
			}
			return x, nil
		}
		end := bytes.LastIndexByte(x.data, '\n') + 1
		switch {
		case end > 0:
			b.rest = append(b.rest, x.data[end:]...)
			x.data = x.data[:end]
			return x, nil
		case len(x.data) > maxLine:
			x.long++
			x.data, b.skip = x.data[:0], true
		}
	}
}
