package replay

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"
)

// growing is one file of a log that grows, known by its device, its inode and its first bytes.
type growing struct {
	*os.File
	at     os.FileInfo
	head   []byte // its first bytes, as far as they are known: others there tell that the file was truncated and has grown again
	offset int64  // up to which it was read
	size   int64  // the last that was seen
	lines  blocks
	grown  time.Time // when it grew last
}

// headBytes is how many of a file's first bytes are remembered: they have the time of a line.
const headBytes = 512

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
	g.head = make([]byte, min(headBytes, g.size))
	if n, err := g.ReadAt(g.head, 0); n < len(g.head) {
		return err
	}
	var last [1]byte
	if g.size > 0 {
		_, err = g.ReadAt(last[:], g.size-1)
		g.lines.skip = last[0] != '\n'
	}
	return err
}

// is reports whether at is this file.
func (g *growing) is(at os.FileInfo) bool { return os.SameFile(at, g.at) }

// Read reads what follows.
func (g *growing) Read(p []byte) (int, error) {
	n, err := g.ReadAt(p, g.offset)
	if known := int64(len(g.head)); known < headBytes && known == g.offset {
		g.head = append(g.head, p[:min(n, headBytes-len(g.head))]...)
	}
	g.offset += int64(n)
	return n, err
}

// truncated reports whether what was read is not in the file any more.
func (g *growing) truncated(size int64) bool {
	if size < g.offset {
		return true
	}
	var now [headBytes]byte
	n, _ := g.ReadAt(now[:len(g.head)], 0)
	return !bytes.Equal(now[:n], g.head)
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

// opened are the files that the logs of a Follower have open, and those that they had: whatever name a file gets, no line of it is
// read twice.
type opened struct {
	open, closed []*growing
}

// maxClosed is how many closed files are remembered.
const maxClosed = 1000

// has reports whether a file is open.
func (o *opened) has(at os.FileInfo) bool {
	return slices.ContainsFunc(o.open, func(g *growing) bool { return g.is(at) })
}

// file opens a file by its name, behind what was read of it before; nil if there is none, or one that is open already.
func (o *opened) file(name string, now time.Time) (*growing, error) {
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	at, err := f.Stat()
	if err != nil || o.has(at) { // the name may have changed hands since somebody looked
		return nil, errors.Join(err, f.Close())
	}
	g := &growing{File: f, at: at}
	g.rewind(now)
	if i := slices.IndexFunc(o.closed, func(x *growing) bool { return x.is(at) }); i >= 0 {
		g.offset, g.size, g.head = o.closed[i].offset, o.closed[i].offset, o.closed[i].head
		if o.closed = slices.Delete(o.closed, i, i+1); g.truncated(at.Size()) { // it is another one, with the same number
			g.rewind(now)
		}
	}
	o.open = append(o.open, g)
	return g, nil
}

// close closes a file.
func (o *opened) close(g *growing) error {
	o.open = slices.DeleteFunc(o.open, func(x *growing) bool { return x == g })
	o.closed = append(o.closed, &growing{at: g.at, offset: g.offset, head: g.head})
	o.closed = o.closed[max(0, len(o.closed)-maxClosed):]
	return g.Close()
}
