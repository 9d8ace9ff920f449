package replay

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// rotated is a file that rotation has put aside, read to its end.
type rotated struct {
	*input
	lines blocks
}

// aside are the names that rotation gives: access.log.1, access.log-20260102.gz, access-20260102.log, access.log.old.
var aside = regexp.MustCompile(`^[-._](?:\d[-.\d_T:]*|old|bak)(?:\.(?:gz|zst))?$`)

// rotations returns the files beside a log that rotation has put aside and that were written to since, the latest first.
func rotations(name string, since time.Time) []string {
	dir, base := filepath.Split(name)
	ext := filepath.Ext(base)
	stem := strings.TrimSuffix(base, ext)
	entries, _ := os.ReadDir(cmp.Or(dir, "."))
	type file struct {
		name string
		at   time.Time
	}
	var files []file
	for _, e := range entries {
		rest, ok := strings.CutPrefix(e.Name(), stem)
		rest = strings.Replace(rest, ext, "", 1)
		if info, err := e.Info(); ok && aside.MatchString(rest) && err == nil && info.Mode().IsRegular() && !info.ModTime().Before(since) {
			files = append(files, file{filepath.Join(dir, e.Name()), info.ModTime()})
		}
	}
	slices.SortStableFunc(files, func(a, b file) int { return b.at.Compare(a.at) })
	names := make([]string, 0, len(files))
	for _, f := range files {
		plain := strings.TrimSuffix(strings.TrimSuffix(f.name, ".gz"), ".zst")
		if plain != f.name && slices.ContainsFunc(files, func(x file) bool { return x.name == plain }) {
			continue // being packed
		}
		names = append(names, f.name)
	}
	return names
}

// isRotated reports whether a file has a name that rotation gives to another one, which is known.
func isRotated(name string, known func(string) bool) bool {
	dir, base := filepath.Split(name)
	ext := filepath.Ext(base)
	for i, c := range base {
		if !strings.ContainsRune("-._", c) || i == 0 {
			continue
		}
		if aside.MatchString(base[i:]) && known(dir+base[:i]) ||
			i < len(base)-len(ext) && aside.MatchString(base[i:len(base)-len(ext)]) && known(dir+base[:i]+ext) {
			return true
		}
	}
	return false
}

// openRotated opens what was rotated away, since servers may still write to it.
func (t *tail) openRotated(since time.Time) error {
	for _, name := range rotations(t.name, since) {
		in, err := open(name, nil, new(atomic.Int64))
		if errors.Is(err, os.ErrNotExist) {
			continue // rotated once more: it is open, or has another name
		}
		if err != nil {
			return err
		}
		if in.packed {
			t.old = slices.Insert(t.old, 0, newRotated(in))
			continue
		}
		if err := in.close(); err != nil {
			return err
		}
		g, err := t.opened.file(name, time.Now())
		if err != nil {
			return err
		}
		if g != nil {
			t.files = slices.Insert(t.files, 0, g)
		}
	}
	return nil
}

func newRotated(in *input) *rotated { return &rotated{in, blocks{r: in}} }

// nextOld returns lines of what was put aside; ok is false if there is nothing left.
func (t *tail) nextOld() (x block, ok bool, err error) {
	for len(t.old) > 0 {
		x, err := t.old[0].lines.next(nil)
		if err == nil {
			return x, true, nil
		}
		if err = errors.Join(dropEOF(err), t.old[0].close()); err != nil {
			return x, false, err
		}
		t.old = t.old[1:]
	}
	return block{}, false, nil
}

func dropEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
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
	if c := copyOf(t.name, g); c == nil {
		x.data, x.cut = g.end().data, g.size-g.offset
	} else {
		if t.old = append(t.old, c); !c.packed {
			x.cut = max(0, g.size-c.size)
		}
	}
	g.rewind(now)
	return x, nil
}

// copyOf finds the copy of a file that was truncated, and goes on in it where the reading of the file has ended; nil if there is
// none that has more.
func copyOf(name string, g *growing) *rotated {
	for _, name := range rotations(name, g.grown.Add(-2*time.Second)) { // clocks of file systems are coarse
		if r := continued(name, g.offset-int64(len(g.last)), g.last); r != nil {
			r.lines.rest, r.lines.skip = g.lines.rest, g.lines.skip
			return r
		}
	}
	return nil
}

// continued opens a file behind the last bytes that were read, at an offset; nil if it has others there.
func continued(name string, offset int64, last []byte) *rotated {
	in, err := open(name, nil, new(atomic.Int64))
	if err != nil {
		return nil
	}
	if in.packed {
		_, err = io.CopyN(io.Discard, in, offset)
	} else {
		err = in.seek(offset)
	}
	got := make([]byte, len(last))
	if err == nil {
		_, err = io.ReadFull(in, got)
	}
	if err != nil || !bytes.Equal(got, last) {
		_ = in.close()
		return nil
	}
	return newRotated(in)
}
