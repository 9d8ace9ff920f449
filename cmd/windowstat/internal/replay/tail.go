package replay

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"
)

// tail is the input from a log that grows, through rotation: when another file gets its name, it reads that one from its beginning,
// and the old one as long as it grows, since servers write to it until they reopen their log. When a file is truncated, what was
// not read yet is read from the copy that rotation made of it.
type tail struct {
	name   string
	dirs   []string // into which rotation moves files, besides those of the log
	opened *opened
	note   func(text string)
	files  []*growing // the last one has the name, or had it last
	old    []*rotated // read before the files
	gone   bool       // no file has the name, or one of another log
	quit   bool       // of the last file, too, when it is gone and does not grow
	denied time.Time  // since when the file that has the name may not be read; zero if it may
}

const (
	// poll is how often the files are checked for growth.
	poll = 200 * time.Millisecond
	// linger is how long a file that lost its name stays open without growing.
	linger = time.Minute
)

// start opens the file, if it exists. The file stays open, so that no later one is mistaken for it. Files that appear later are read
// from their beginning.
func (t *tail) start(atEnd bool) error {
	err := t.reopen(time.Now())
	if err == nil && atEnd && len(t.files) > 0 {
		err = t.files[0].toEnd()
	}
	return err
}

// reopen opens the file that has the name now, if it is another than before.
func (t *tail) reopen(now time.Time) error {
	at, err := os.Stat(t.name)
	if t.gone = errors.Is(err, fs.ErrNotExist); t.gone {
		return nil // the old one may still grow
	}
	if err != nil {
		return err
	}
	if t.has(at) {
		return nil
	}
	if t.gone = t.opened.has(at); t.gone {
		return nil
	}
	g, err := t.opened.file(t.name, now)
	if g != nil {
		t.files = append(t.files, g)
	}
	return err
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

// look returns whole lines that the files have grown by, or, if there are none, the time up to which all lines were returned.
func (t *tail) look() (block, error) {
	for {
		if x, ok, err := t.nextOld(); ok || err != nil {
			return x, err
		}
		now := time.Now() // all that was written before is read below
		if err := t.refused(t.reopen(now), now); err != nil {
			return block{}, err
		}
		again := false
		for i, g := range t.files {
			x, err := t.grow(g, now)
			if err != nil || len(x.data) > 0 || x.long > 0 || x.truncated {
				return x, err
			}
			if (i < len(t.files)-1 || t.gone && t.quit) && now.Sub(g.grown) > linger {
				t.files = append(t.files[:i:i], t.files[i+1:]...)
				x := g.end()
				if err := t.opened.close(g); err != nil || len(x.data) > 0 {
					return x, err
				}
				again = true
				break
			}
		}
		if again {
			continue
		}
		if t.quit && t.gone && len(t.files) == 0 {
			if _, err := os.Stat(t.name); errors.Is(err, fs.ErrNotExist) {
				return block{}, io.EOF
			}
		}
		return block{upTo: now}, nil
	}
}

// grow reads whole lines of a file. If it was truncated, it is read again from its beginning, behind the rest of its copy. What
// was known to be there and is in no copy is counted as cut.
func (t *tail) grow(g *growing, now time.Time) (block, error) {
	own, err := g.Stat()
	if err != nil {
		return block{}, err
	}
	if !g.truncated(own.Size()) {
		g.size = own.Size()
		return g.next(now)
	}
	x := block{truncated: true}
	if c := t.copyOf(g); c == nil {
		x.data, x.cut = g.end().data, g.size-g.offset
	} else {
		if t.old = append(t.old, c); !c.packed {
			x.cut = max(0, g.size-c.size)
		}
	}
	g.rewind(now)
	return x, nil
}

// refused returns an error of reopen, unless the file may not be read: rotation makes a file before it sets who may. That is said
// once, and lasts for as long as a file lingers, or, where a pattern stands for the logs, for ever: the others go on.
func (t *tail) refused(err error, now time.Time) error {
	switch {
	case !errors.Is(err, fs.ErrPermission):
		t.denied = time.Time{}
		return err
	case t.denied.IsZero():
		t.denied = now
		t.note(fmt.Sprintf("%v; it is tried again", err))
	case !t.quit && now.Sub(t.denied) > linger:
		return err
	}
	return nil
}

// reuse does nothing: most blocks are small.
func (*tail) reuse(block) {}

func (t *tail) close() error {
	var errs []error
	for _, g := range t.files {
		errs = append(errs, t.opened.close(g))
	}
	for _, r := range t.old {
		errs = append(errs, r.close())
	}
	t.files, t.old = nil, nil
	return errors.Join(errs...)
}
