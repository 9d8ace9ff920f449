package replay

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"
)

// tail reads a file that grows, through rotation: when another file has its name, or it was cut off, it reads what the
// old one still has, and then the new one from its beginning.
type tail struct {
	name   string
	file   *os.File // nil while there is none
	offset int64
	lines  blocks
}

// poll is how often it is looked whether a file has grown.
const poll = 200 * time.Millisecond

// newTail opens the file, if it is there, at its end or at its beginning.
func newTail(name string, atEnd bool) (*tail, error) {
	t := &tail{name: name}
	if err := t.open(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if atEnd && t.file != nil {
		end, err := t.file.Seek(0, io.SeekEnd)
		if err != nil {
			return nil, errors.Join(err, t.file.Close())
		}
		t.offset = end
		t.lines.skip = end > 0 && !endsLine(t.file, end)
	}
	return t, nil
}

// endsLine reports whether a line ends at an offset. If not, what comes there first is the rest of one.
func endsLine(f io.ReaderAt, offset int64) bool {
	var b [1]byte
	_, err := f.ReadAt(b[:], offset-1)
	return err == nil && b[0] == '\n'
}

func (t *tail) open() (err error) {
	t.file, err = os.Open(t.name)
	t.offset = 0
	t.lines = blocks{r: t}
	return err
}

// Read reads what is there. At the end of what there is the error is io.EOF, and reading may go on later.
func (t *tail) Read(p []byte) (int, error) {
	n, err := t.file.Read(p)
	t.offset += int64(n)
	return n, err
}

// next is what the file has grown by, in whole lines. It waits for that.
func (t *tail) next(ctx context.Context) (block, error) {
	wait := time.NewTicker(poll)
	defer wait.Stop()
	for {
		if t.file != nil {
			moved := t.moved() // looked at first: what is written until then is read below
			x, err := t.lines.next(nil)
			if err == nil {
				torn := len(x.data) > 0 && x.data[len(x.data)-1] != '\n'
				if torn && !moved { // the line is being written
					end := lastLine(x.data)
					t.lines.rest = append(t.lines.rest[:0], x.data[end:]...)
					x.data = x.data[:end]
				}
				t.lines.end = nil
				if len(x.data) > 0 || x.long > 0 {
					return x, nil
				}
			} else if !errors.Is(err, io.EOF) {
				return x, err
			}
			t.lines.end = nil
			if moved {
				if err := t.file.Close(); err != nil {
					return block{}, err
				}
				t.file = nil
			}
		}
		if t.file == nil {
			switch err := t.open(); {
			case err == nil:
				continue
			case !errors.Is(err, fs.ErrNotExist):
				return block{}, err
			}
			t.file = nil
		}
		select {
		case <-ctx.Done():
			return block{}, ctx.Err()
		case <-wait.C:
		}
	}
}

// lastLine is where the last line of a piece begins.
func lastLine(b []byte) int {
	for i := len(b); i > 0; i-- {
		if b[i-1] == '\n' {
			return i
		}
	}
	return 0
}

// moved reports whether another file has the name, or none, or the file was cut off.
func (t *tail) moved() bool {
	at, err := os.Stat(t.name)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	open, err := t.file.Stat()
	return err != nil || !os.SameFile(at, open) || open.Size() < t.offset
}

func (t *tail) close() error {
	if t.file == nil {
		return nil
	}
	return t.file.Close()
}
