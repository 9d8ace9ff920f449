package replay

import (
	"bytes"
	"errors"
	"io"
	"os"
	"time"
)

// growing is one file that grows.
type growing struct {
	*os.File
	at     os.FileInfo
	offset int64  // up to which it was read
	size   int64  // the last that was seen
	last   []byte // what is before the offset: another text there tells that the file was truncated and has grown again
	lines  blocks
	grown  time.Time // when it grew last
}

// lastBytes is how much of what was read is remembered. It has the time of a line, which is another later.
const lastBytes = 512

// rewind begins at the beginning.
func (g *growing) rewind(now time.Time) {
	*g = growing{File: g.File, at: g.at, grown: now}
	g.lines.r = g
}

// toEnd skips what the file has, and the rest of a line that is not complete.
func (g *growing) toEnd() error {
	own, err := g.Stat()
	if err != nil {
		return err
	}
	g.offset, g.size = own.Size(), own.Size()
	g.last = make([]byte, min(lastBytes, g.size))
	if n, err := g.ReadAt(g.last, g.offset-int64(len(g.last))); n < len(g.last) {
		return err
	}
	g.lines.skip = len(g.last) > 0 && g.last[len(g.last)-1] != '\n'
	return nil
}

// is reports whether at is this file.
func (g *growing) is(at os.FileInfo) bool { return os.SameFile(at, g.at) }

// Read reads what follows.
func (g *growing) Read(p []byte) (int, error) {
	n, err := g.ReadAt(p, g.offset)
	g.offset += int64(n)
	if n >= lastBytes {
		g.last = append(g.last[:0], p[n-lastBytes:n]...)
	} else {
		g.last = append(g.last, p[:n]...)
		g.last = append(g.last[:0], g.last[max(0, len(g.last)-lastBytes):]...)
	}
	return n, err
}

// truncated reports whether what was read is not in the file any more.
func (g *growing) truncated(size int64) bool {
	if size < g.offset {
		return true
	}
	var now [lastBytes]byte
	n, _ := g.ReadAt(now[:len(g.last)], g.offset-int64(len(g.last)))
	return !bytes.Equal(now[:n], g.last)
}

// next reads whole lines, if there are any.
func (g *growing) next(now time.Time) (block, error) {
	if g.size <= g.offset {
		return block{}, nil
	}
	g.grown = now
	x, err := g.lines.next(make([]byte, 0, min(g.size-g.offset+int64(len(g.lines.rest)), blockSize)))
	g.lines.end = nil
	if err != nil && !errors.Is(err, io.EOF) {
		return x, err
	}
	end := bytes.LastIndexByte(x.data, '\n') + 1
	g.lines.rest = append(g.lines.rest, x.data[end:]...) // an incomplete line
	x.data = x.data[:end]
	return x, nil
}

// end returns the incomplete line, when no more of it will come.
func (g *growing) end() block {
	rest := g.lines.rest
	g.lines.rest = nil
	return block{data: rest}
}
