package replay

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"
)

// opened are the files that the logs of a Follower have open, and those that they had: whatever name a file gets, no line of it is
// read twice.
type opened struct {
	open, closed []*growing
	note         func(text string)
}

// maxClosed is how many closed files are remembered.
const maxClosed = 1000

// has reports whether a file is open.
func (o *opened) has(at os.FileInfo) bool {
	return slices.ContainsFunc(o.open, func(g *growing) bool { return g.is(at) })
}

// add begins a file, behind what was read of it before.
func (o *opened) add(file *os.File, at os.FileInfo, now time.Time) *growing {
	g := &growing{File: file, at: at}
	g.rewind(now)
	if i := slices.IndexFunc(o.closed, func(x *growing) bool { return x.is(at) }); i >= 0 {
		g.offset, g.size, g.last = o.closed[i].offset, o.closed[i].offset, o.closed[i].last
		if o.closed = slices.Delete(o.closed, i, i+1); g.truncated(at.Size()) { // it is another one, with the same number
			g.rewind(now)
		}
	}
	o.open = append(o.open, g)
	return g
}

// close closes a file.
func (o *opened) close(g *growing) error {
	o.open = slices.DeleteFunc(o.open, func(x *growing) bool { return x == g })
	o.closed = append(o.closed, &growing{at: g.at, offset: g.offset, last: g.last})
	o.closed = o.closed[max(0, len(o.closed)-maxClosed):]
	return g.Close()
}

// file opens a file by its name; nil if there is none, or one that is open already.
func (o *opened) file(name string, now time.Time) (*growing, error) {
	file, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	at, err := file.Stat()
	if err != nil || o.has(at) { // the name may have changed hands since somebody looked
		return nil, errors.Join(err, file.Close())
	}
	return o.add(file, at, now), nil
}
