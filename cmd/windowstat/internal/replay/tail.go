package replay

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"
)

// tail reads a file that grows, through rotation: when another file gets its name, it reads that one from its beginning, and
// the old one as long as it grows, since servers write to it until they reopen their log.
type tail struct {
	name  string
	files []*growing // the last one has the name, or had it last
	idle  bool       // all was read
}

const (
	// poll is how often the files are checked for growth.
	poll = 200 * time.Millisecond
	// linger is how long a file that lost its name stays open without growing.
	linger = time.Minute
)

// newTail opens the file, if it exists, at its end or at its beginning. Files that appear later are read from their
// beginning. The file stays open, so that no later one is mistaken for it.
func newTail(name string, atEnd bool) (*tail, error) {
	t := &tail{name: name}
	if at, err := os.Stat(name); err == nil && !at.Mode().IsRegular() {
		return t, nil // opening a pipe may block, and a pipe has no end to go to
	}
	if err := t.reopen(time.Now()); err != nil {
		return nil, err
	}
	if atEnd && len(t.files) > 0 {
		if err := t.files[0].toEnd(); err != nil {
			return nil, errors.Join(err, t.close())
		}
	}
	return t, nil
}

// reopen opens the file that has the name now, if it is another than before.
func (t *tail) reopen(now time.Time) error {
	at, err := os.Stat(t.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the old one may still grow
	}
	if err != nil {
		return err
	}
	if t.has(at) {
		return nil
	}
	file, err := os.Open(t.name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if at, err = file.Stat(); err != nil || t.has(at) { // the name has changed hands meanwhile
		return errors.Join(err, file.Close())
	}
	t.files = append(t.files, newGrowing(file, now))
	return nil
}

// has reports whether the file is open already, and makes it the one with the name: a rotation may have been undone, and
// what was read must not be read again.
func (t *tail) has(at os.FileInfo) bool {
	for i, g := range t.files {
		if g.is(at) {
			t.files = append(slices.Delete(t.files, i, i+1), g)
			return true
		}
	}
	return false
}

// next returns whole lines that the files have grown by, or, if there are none, the time up to which all lines were
// returned. It waits between two rounds.
func (t *tail) next(ctx context.Context) (block, error) {
	if t.idle {
		select {
		case <-ctx.Done():
			return block{}, ctx.Err()
		case <-time.After(poll):
		}
	}
	t.idle = false
	for ctx.Err() == nil {
		now := time.Now() // all that was written before is read below
		if err := t.reopen(now); err != nil {
			return block{}, err
		}
		closed := false
		for i, g := range t.files {
			x, err := g.next(now)
			if err != nil || len(x.data) > 0 || x.long > 0 {
				return x, err
			}
			if i < len(t.files)-1 && now.Sub(g.grown) > linger {
				t.files = append(t.files[:i:i], t.files[i+1:]...)
				x := g.end()
				if err := g.Close(); err != nil || len(x.data) > 0 {
					return x, err
				}
				closed = true
				break
			}
		}
		if !closed {
			t.idle = true
			return block{upTo: now}, nil
		}
	}
	return block{}, ctx.Err()
}

func (t *tail) close() error {
	var errs []error
	for _, g := range t.files {
		errs = append(errs, g.Close())
	}
	return errors.Join(errs...)
}

// growing is one file that grows.
type growing struct {
	*os.File
	offset int64
	lines  blocks
	grown  time.Time // when it grew last
}

func newGrowing(file *os.File, now time.Time) *growing {
	return &growing{File: file, lines: blocks{r: file}, grown: now}
}

// toEnd skips what the file has, and the rest of a line that is not complete.
func (g *growing) toEnd() (err error) {
	if g.offset, err = g.Seek(0, io.SeekEnd); err != nil || g.offset == 0 {
		return err
	}
	var b [1]byte
	_, err = g.ReadAt(b[:], g.offset-1)
	g.lines.skip = b[0] != '\n'
	return err
}

// is reports whether at is this file.
func (g *growing) is(at os.FileInfo) bool {
	own, err := g.Stat()
	return err == nil && os.SameFile(at, own)
}

// next reads whole lines, if there are any. It reads a truncated file again from its beginning.
func (g *growing) next(now time.Time) (block, error) {
	own, err := g.Stat()
	if err != nil {
		return block{}, err
	}
	if own.Size() < g.offset {
		if _, err := g.Seek(0, io.SeekStart); err != nil {
			return block{}, err
		}
		x := g.end()
		g.offset, g.lines = 0, blocks{r: g.File}
		if len(x.data) > 0 {
			return x, nil
		}
	}
	x, err := g.lines.next(nil)
	g.lines.end = nil
	if err != nil && !errors.Is(err, io.EOF) {
		return x, err
	}
	end := bytes.LastIndexByte(x.data, '\n') + 1
	g.lines.rest = append(g.lines.rest, x.data[end:]...) // an incomplete line
	x.data = x.data[:end]
	offset, err := g.Seek(0, io.SeekCurrent)
	if offset != g.offset {
		g.offset, g.grown = offset, now
	}
	return x, err
}

// end returns the incomplete line, when no more of it will come.
func (g *growing) end() block {
	rest := g.lines.rest
	g.lines.rest = nil
	return block{data: rest}
}
