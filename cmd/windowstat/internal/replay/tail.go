package replay

import (
	"errors"
	"io/fs"
	"os"
	"slices"
	"time"
)

// tail reads a file that grows, through rotation: when another file gets its name, it reads that one from its beginning, and
// the old one as long as it grows, since servers write to it until they reopen their log. When a file is truncated, what was
// not read yet is read from the copy that rotation made of it.
type tail struct {
	name  string
	files []*growing // the last one has the name, or had it last
	old   []*rotated // read before the files
	gone  bool       // no file has the name
	quit  bool       // of the last file, too, when it is gone and does not grow
}

const (
	// poll is how often the files are checked for growth, if nobody tells of it earlier.
	poll = 200 * time.Millisecond
	// linger is how long a file that lost its name stays open without growing.
	linger = time.Minute
)

// newTail opens the file, if it exists, at its end, or, if since is not the zero Time, at its beginning, and what was rotated
// away since. Files that appear later are read from their beginning. The file stays open, so that no later one is mistaken
// for it.
func newTail(name string, since time.Time) (*tail, error) {
	t := &tail{name: name}
	err := t.reopen(time.Now())
	if err == nil && since.IsZero() && len(t.files) > 0 {
		err = t.files[0].toEnd()
	}
	if err == nil && !since.IsZero() {
		err = t.openRotated(since)
	}
	if err != nil {
		return nil, errors.Join(err, t.close())
	}
	return t, nil
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

// look returns whole lines that the files have grown by, or, if there are none, the time up to which all lines were returned.
func (t *tail) look() (block, error) {
	for {
		if x, ok, err := t.nextOld(); ok || err != nil {
			return x, err
		}
		now := time.Now() // all that was written before is read below
		if err := t.reopen(now); err != nil {
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
				if err := g.Close(); err != nil || len(x.data) > 0 {
					return x, err
				}
				again = true
				break
			}
		}
		if !again {
			return block{upTo: now}, nil
		}
	}
}

func (t *tail) close() error {
	var errs []error
	for _, g := range t.files {
		errs = append(errs, g.Close())
	}
	for _, r := range t.old {
		errs = append(errs, r.close())
	}
	return errors.Join(errs...)
}
