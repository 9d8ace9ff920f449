package replay

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"time"
)

// tail is the input from a log that grows, through rotation: when another file gets its name, it reads that one from its beginning,
// and the old one as long as it grows, since servers write to it until they reopen their log. When a file is truncated, what was
// not read yet is read from the copy that rotation made of it.
//
// What rotation does, and what the tail does then:
//
//   - rename, and create another: the part of the old file stays, and one of the new file is put behind it. The server writes to the
//     old one until it opens its log again, so that is read until it has not grown for a minute;
//   - rename into another directory, which may be on another file system: the same, as the old file is open;
//   - a symbolic link to another file: the same, as the name leads to another device and inode;
//   - rename, and gzip: the open file is read to its end. Its packed copy is another file, which nobody reads;
//   - copy, and truncate: the file is shorter than what was read of it, or begins otherwise. A copy whose beginning is the same is
//     read from where the reading of the file ended, and the file from its beginning;
//   - all of these while nobody reads, or several between two looks: what rotation has made of the log and was written to since is read
//     first, the earliest first. While the tail reads, that is what begins like no file that it has read.
//
// Its files are parts, which are read one after the other: at first those that rotation has put aside for good, then those that may
// still grow, and the one that has the name as the last. A look reads from the first part that has something, so lines come in the order in
// which they were written. Nothing is read twice, since a file is known by what it is and not by its name, and nothing is left out, since it
// stays open until it has not grown for a while.
type tail struct {
	*Follower
	name    string
	matched bool      // by a pattern: when it is gone and does not grow, it has ended
	since   time.Time // what was written since is read, also of what was rotated away; the zero Time for what is written from now on
	begun   time.Time // when reading did: what was put aside before is none of its files; the zero Time before
	first   int64     // the time of the earliest line written since, 0 if there is none
	parts   []*part   // in the order of reading; the last one has the name, or had it last
	gone    bool      // no file has the name, or one of another log
	held    time.Time // when the last part was last seen to have it
	denied  time.Time // since when the file that has the name may not be read; zero if it may
}

const (
	// poll is how often the files are checked for growth.
	poll = 200 * time.Millisecond
	// linger is how long a file that lost its name stays open without growing.
	linger = time.Minute
	// coarse is by how much the clocks of file systems are behind at most.
	coarse = 2 * time.Second
)

// newTail makes a tail that opens its files when it looks first, unless open is called before.
func (r *Follower) newTail(name string, matched bool, since time.Time) *tail {
	return &tail{Follower: r, name: name, matched: matched, since: since}
}

// open opens the file that has the name, if it exists, and at first what was rotated away, or goes to the end. The files stay open,
// so that no later one is mistaken for one of them. Files that appear later are read from their beginning.
func (t *tail) open(now time.Time) error {
	err := t.reopen(now)
	switch {
	case err != nil || !t.begun.IsZero():
		return err
	case !t.since.IsZero():
		err = t.openRotated(t.since)
	case len(t.parts) > 0:
		err = t.parts[0].toEnd()
	}
	if err != nil {
		return errors.Join(err, t.close())
	}
	t.begun, t.held = now, now
	return nil
}

// reopen opens the file that has the name now, if it is another than before. The old one may still grow.
func (t *tail) reopen(now time.Time) error {
	at, err := os.Stat(t.name)
	named := func(p *part) bool { return err == nil && os.SameFile(p.at, at) }
	if i := slices.IndexFunc(t.parts, named); i >= 0 {
		p := t.parts[i] // which is not the last one if a rotation was undone
		t.parts, t.gone, t.held = append(slices.Delete(t.parts, i, i+1), p), false, now
		return nil
	}
	p, err := t.opened.file(t.name, t.name, now)
	if t.gone = p == nil && err == nil; p == nil {
		return err
	}
	held := t.held
	t.parts, t.held = append(t.parts, p), now
	t.openMissed(held)
	return nil
}

// openMissed opens what came and was rotated away after a look at which the log was as it had been.
func (t *tail) openMissed(look time.Time) {
	if t.begun.IsZero() {
		return
	}
	since := look.Add(-coarse)
	if since.Before(t.begun) {
		since = t.begun
	}
	if err := t.openRotated(since); err != nil {
		t.note(fmt.Sprintf("%v; what else was rotated away meanwhile is not counted", err))
	}
}

// openRotated opens what was written since and rotated away, unless it was read, in the order of the first lines. Servers may still write to
// what is not packed.
func (t *tail) openRotated(since time.Time) (err error) {
	type candidate struct {
		name string
		sample
	}
	var rotated []candidate
	// The log is one of those that tell where reading begins, though it is open already.
	for _, name := range append(rotations(t.name, t.RotatedDirs, since), t.name) {
		c := candidate{name: name}
		if c.sample, err = t.sampleOf(name); notThere(err) {
			continue // rotated once more: it is open, or has another name
		}
		if err != nil {
			return err
		}
		if c.format != nil && (t.first == 0 || c.first < t.first) {
			t.first = c.first
		}
		// What came since the tail has begun has later lines: an old file may have been packed, or copied back. An empty one is being copied.
		old := !t.begun.IsZero() && (len(c.head) == 0 || c.last != 0 && c.last < since.Add(-t.Tolerance).UnixNano())
		if name != t.name && !old && !t.opened.begins(t.name, c.head) {
			rotated = append(rotated, c)
		}
	}
	slices.Reverse(rotated) // the one written to last was the first
	slices.SortStableFunc(rotated, func(a, b candidate) int { return cmp.Compare(a.first/nanos, b.first/nanos) })
	at := len(t.parts)
	if !t.gone {
		at--
	}
	for _, c := range rotated {
		var p *part
		if c.packed { // nothing is written to it any more
			p, err = openAside(c.name)
			t.opened.remember(t.name, c.head)
		} else {
			p, err = t.opened.file(t.name, c.name, time.Now())
		}
		if err != nil {
			return err
		}
		if p != nil {
			t.parts = slices.Insert(t.parts, at, p)
			at++
		}
	}
	return nil
}

// sampleOf is what the first lines of a file show. A name of the log may have come to lead to a pipe or a device, which is not kept open.
func (t *tail) sampleOf(name string) (sample, error) {
	s, pipe, err := t.firstLines(name, sampleLines)
	if pipe != nil {
		err = errors.Join(err, pipe.close())
	}
	return s, err
}

// inspect finds out about the log from its file, or else from one that was rotated away.
func (t *tail) inspect(s *sample) error {
	for i, name := range append([]string{t.name}, rotations(t.name, t.RotatedDirs, time.Time{})...) {
		found, err := t.sampleOf(name)
		if err == nil {
			err = found.err
		}
		switch {
		case i == 0 && found.packed:
			return fmt.Errorf("%s is packed; a log that grows is not", name)
		case i == 0 && err != nil && !notThere(err) && (!t.begun.IsZero() || !errors.Is(err, fs.ErrPermission)):
			return err
		case err == nil && found.format != nil:
			if *s = found; s.first != 0 {
				return nil
			}
		}
	}
	return nil
}

// look returns whole lines that the files have grown by, or, if there are none, the time up to which all lines were returned. That is the
// time at which it began: what is written while it reads may be of a part that it has passed.
func (t *tail) look() (block, error) {
	now := time.Now() // all that was written before is read below
	if err := t.refused(t.open(now), now); err != nil {
		return block{}, err
	}
	for i := 0; i < len(t.parts); {
		p := t.parts[i]
		x, err := t.grow(i, now)
		ended := errors.Is(err, io.EOF)
		if err != nil && !ended || len(x.data) > 0 || x.long > 0 || x.truncated {
			return x, err
		}
		// A file that has the name stays open. One that lost it may still be written to, for a while.
		if !ended && (i == len(t.parts)-1 && !(t.gone && t.matched) || now.Sub(p.grown) <= linger) {
			i++
			continue
		}
		t.parts = slices.Delete(t.parts, i, i+1)
		x = p.incomplete()
		if err := t.opened.close(p); err != nil || len(x.data) > 0 {
			return x, err
		}
	}
	// Another log may have taken the name: then this one goes on when it comes back.
	if t.matched && t.gone && len(t.parts) == 0 {
		if _, err := os.Stat(t.name); notThere(err) {
			return block{}, io.EOF
		}
	}
	return block{upTo: now}, nil
}

// grow reads whole lines of a file. If it was truncated, it is read again from its beginning, behind the rest of its copy. What
// was known to be there and is in no copy is counted as cut.
func (t *tail) grow(i int, now time.Time) (block, error) {
	p := t.parts[i]
	if p.aside != nil {
		return p.lines.next(nil)
	}
	own, err := p.Stat()
	if err != nil {
		return block{}, err
	}
	if !p.truncated(own.Size()) {
		p.size = own.Size()
		return p.next(now)
	}
	x := block{truncated: true}
	if c := t.copyOf(p); c == nil {
		x.data, x.cut = p.incomplete().data, p.size-p.offset
	} else {
		if t.parts = slices.Insert(t.parts, i, c); !c.aside.packed {
			x.cut = max(0, p.size-c.aside.size)
		}
	}
	look := p.grown
	t.opened.remember(t.name, p.head)
	p.rewind(now)
	t.openMissed(look)
	return x, nil
}

// copyOf finds the copy of a file that was truncated, and goes on in it where the reading of the file has ended; nil if there is
// none that has more.
func (t *tail) copyOf(p *part) *part {
	for _, name := range rotations(t.name, t.RotatedDirs, p.grown.Add(-coarse)) {
		c, err := openAside(name)
		if err != nil {
			continue
		}
		head := make([]byte, len(p.head))
		_, err = io.ReadFull(c.aside, head)
		same := err == nil && bytes.Equal(head, p.head)
		if same && c.aside.packed {
			_, err = io.CopyN(io.Discard, c.aside, p.offset-int64(len(head)))
		} else {
			c.lines.r = io.NewSectionReader(c.aside.raw, p.offset, math.MaxInt64-p.offset)
		}
		if same && err == nil {
			c.lines.rest, c.lines.skip = p.lines.rest, p.lines.skip
			return c
		}
		_ = t.opened.close(c)
	}
	return nil
}

// refused returns an error of opening, unless it may pass: rotation makes a file before it sets its permissions, and a log that matches a
// pattern stops no other. That is said once, and tried again for as long as a file lingers, or, where a pattern stands for the logs, for
// ever.
func (t *tail) refused(err error, now time.Time) error {
	switch {
	case err == nil || !t.begun.IsZero() && !errors.Is(err, fs.ErrPermission):
		t.denied = time.Time{}
		return err
	case t.denied.IsZero():
		t.denied = now
		t.note(fmt.Sprintf("%v; it is tried again", err))
	case !t.matched && now.Sub(t.denied) > linger:
		return err
	}
	return nil
}

// close closes all files. How far they were read is remembered.
func (t *tail) close() error {
	var errs []error
	for _, p := range t.parts {
		errs = append(errs, t.opened.close(p))
	}
	t.parts = nil
	return errors.Join(errs...)
}
