package replay

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"time"
)

// tail is the input from a log that grows. It reads every line that is written to the log once, regardless of rotation;
// see the table at [followedFile].
//
// The files of a tail are read one after the other, in the order in which they were written:
//
//	files  [ archives ]  [ files that lost the name ]  [ the file with the name ]
//	       read to       open until they have not      open as long as it
//	       their ends    grown for closeAfter          has the name
//
// A poll returns lines of the first file that has any, so a line of a later file never precedes them. A file that lost
// the name stays open for closeAfter, because a server writes to a renamed file until it opens its log again.
type tail struct {
	*Follower
	name      string
	byPattern bool // the name matches a pattern: the log ends when its file is removed and does not grow
	// Lines written after since are read, also from rotated files. Zero means lines written from now on.
	since     time.Time
	started   time.Time       // start of reading; older rotated files do not belong to the tail; zero before open
	firstLine int64           // time of the earliest line written since, or 0
	files     []*followedFile // in the order of reading; the last one has the name, or had it most recently
	missing   bool            // no file has the name, or another log reads the file with the name
	lastNamed time.Time       // time of the last poll with a file of that name
	denied    time.Time       // time of the first refused attempt to open the file; zero after success
}

const (
	// poll is the interval between two checks of the files.
	poll = 200 * time.Millisecond
	// closeAfter is the time without growth after which a file that lost its name is closed.
	closeAfter = time.Minute
	// fileTimeLag is the maximum lag of the clocks of file systems.
	fileTimeLag = 2 * time.Second
)

// newTail returns a tail. Its first poll opens its files, unless the caller calls open before.
func (r *Follower) newTail(name string, byPattern bool, since time.Time) *tail {
	return &tail{Follower: r, name: name, byPattern: byPattern, since: since}
}

// open opens the file with the name, if it exists. The first call also opens the rotated files that were written after
// since, or goes to the end of the file. Files stay open: while a file is open, no later file can have its inode and be
// mistaken for it. Files that appear later are read from their start.
func (t *tail) open(now time.Time) error {
	err := t.openNamed(now)
	switch {
	case err != nil || !t.started.IsZero():
		return err
	case !t.since.IsZero():
		err = t.openRotated(t.since)
	case len(t.files) > 0:
		err = t.files[0].seekEnd()
	}
	if err != nil {
		return errors.Join(err, t.close())
	}
	t.started, t.lastNamed = now, now
	return nil
}

// openNamed opens the file that has the name now, unless it is open. The previous file stays open, because it may grow.
func (t *tail) openNamed(now time.Time) error {
	id, err := os.Stat(t.name)
	named := func(f *followedFile) bool { return err == nil && f.id != nil && os.SameFile(f.id, id) }
	if i := slices.IndexFunc(t.files, named); i >= 0 {
		f := t.files[i] // not the last one if a rotation was undone
		t.files, t.missing, t.lastNamed = append(slices.Delete(t.files, i, i+1), f), false, now
		return nil
	}
	f, err := t.openFiles.open(t.name, t.name, now)
	if t.missing = f == nil && err == nil; f == nil {
		return err
	}
	lastNamed := t.lastNamed
	t.files, t.lastNamed = append(t.files, f), now
	t.openMissed(lastNamed)
	return nil
}

// openMissed opens the files that were created and rotated after the last poll.
func (t *tail) openMissed(lastPoll time.Time) {
	if t.started.IsZero() {
		return
	}
	since := lastPoll.Add(-fileTimeLag)
	if since.Before(t.started) {
		since = t.started
	}
	if err := t.openRotated(since); err != nil {
		t.note(fmt.Sprintf("%v; other files that were rotated since the last poll are not counted", err))
	}
}

// openRotated opens the rotated files that were written after since and are new to the Follower, in the order of their
// first lines, before the file with the name. A file that is not packed is opened as a growing file, because the server
// may have it open.
func (t *tail) openRotated(since time.Time) (err error) {
	type candidate struct {
		name string
		sample
	}
	var rotated []candidate
	// Also sample the log itself, although it is open: it has the first line if nothing was rotated.
	for _, name := range append(rotations(t.name, t.RotatedDirs, since), t.name) {
		c := candidate{name: name}
		if c.sample, err = t.sampleOf(name); notThere(err) {
			continue // rotated again: it is open, or has another name
		}
		if err != nil {
			return err
		}
		if c.format != nil && (t.firstLine == 0 || c.first < t.firstLine) {
			t.firstLine = c.first
		}
		// If all lines of a file are older, the file was only packed or copied after since. If the file is empty, a
		// copy is being made.
		old := !t.started.IsZero() &&
			(len(c.start.head) == 0 || c.last != 0 && c.last < since.Add(-t.Tolerance).UnixNano())
		if name != t.name && !old && !t.openFiles.knows(t.name, c.start) {
			rotated = append(rotated, c)
		}
	}
	slices.Reverse(rotated) // most recently written file last; the stable sort keeps this order within a second
	slices.SortStableFunc(rotated, func(a, b candidate) int { return cmp.Compare(a.first/nanos, b.first/nanos) })
	at := len(t.files)
	if !t.missing {
		at--
	}
	for _, c := range rotated {
		var f *followedFile
		if c.packed {
			f, err = openArchive(c.name)
			t.openFiles.remember(t.name, c.start)
		} else {
			f, err = t.openFiles.open(t.name, c.name, time.Now())
		}
		if err != nil {
			return err
		}
		if f != nil {
			t.files = slices.Insert(t.files, at, f)
			at++
		}
	}
	return nil
}

// sampleOf samples the first lines of a file. It closes a pipe or a device that has taken the name.
func (t *tail) sampleOf(name string) (sample, error) {
	s, pipe, err := t.firstLines(name, sampleLines)
	if pipe != nil {
		err = errors.Join(err, pipe.close())
	}
	return s, err
}

// inspect samples the log, or a rotated file if the log has no line yet.
func (t *tail) inspect(s *sample) error {
	for i, name := range append([]string{t.name}, rotations(t.name, t.RotatedDirs, time.Time{})...) {
		found, err := t.sampleOf(name)
		if err == nil {
			err = found.err
		}
		switch {
		case i == 0 && found.packed:
			return fmt.Errorf("%s is packed; a packed log cannot be followed", name)
		case i == 0 && err != nil && !notThere(err) && (!t.started.IsZero() || !errors.Is(err, fs.ErrPermission)):
			return err
		case err == nil && found.format != nil:
			if *s = found; s.first != 0 {
				return nil
			}
		}
	}
	return nil
}

// look returns the complete lines that were appended to the files. If there are none, it returns the time at which it
// began: all lines written before that time were returned. A line that is written while look runs may be in a file that
// look has already checked.
func (t *tail) look() (block, error) {
	now := time.Now()
	if err := t.tolerate(t.open(now), now); err != nil {
		return block{}, err
	}
	for i := 0; i < len(t.files); {
		f := t.files[i]
		x, err := t.read(i, now)
		ended := errors.Is(err, io.EOF)
		if err != nil && !ended || len(x.data) > 0 || x.long > 0 || x.truncated {
			return x, err
		}
		// Close a finished file. The file with the name is never finished, and a file that lost the name may grow for a
		// while.
		named := i == len(t.files)-1 && !(t.missing && t.byPattern)
		if !ended && (named || now.Sub(f.grown) <= closeAfter) {
			i++
			continue
		}
		t.files = slices.Delete(t.files, i, i+1)
		x = f.incomplete()
		if err := t.openFiles.close(f); err != nil || len(x.data) > 0 {
			return x, err
		}
	}
	// If another log reads the file with this name, this log continues when it gets its name back.
	if t.byPattern && t.missing && len(t.files) == 0 {
		if _, err := os.Stat(t.name); notThere(err) {
			return block{}, io.EOF
		}
	}
	return block{upTo: now}, nil
}

// read reads whole lines of the file with index i. If the file was truncated, read inserts the copy of its previous
// content before it, and starts the file from its beginning. It counts bytes that existed at the last poll and are in
// no copy as cut.
func (t *tail) read(i int, now time.Time) (block, error) {
	f := t.files[i]
	if f.archive != nil {
		return f.lines.next(nil)
	}
	id, err := f.Stat()
	if err != nil {
		return block{}, err
	}
	if !f.truncated(id.Size()) {
		f.size = id.Size()
		return f.next(now)
	}
	x := block{truncated: true}
	if c := t.copyOf(f); c == nil {
		x.data, x.cut = f.incomplete().data, f.size-f.offset
	} else {
		if t.files = slices.Insert(t.files, i, c); !c.archive.packed {
			x.cut = max(0, f.size-c.archive.size)
		}
	}
	lastPoll := f.grown
	t.openFiles.remember(t.name, f.start)
	f.rewind(now)
	t.openMissed(lastPoll)
	return x, nil
}

// copyOf returns the copy of a truncated file, positioned at the offset of the file, or nil if there is no copy.
func (t *tail) copyOf(f *followedFile) *followedFile {
	for _, name := range rotations(t.name, t.RotatedDirs, f.grown.Add(-fileTimeLag)) {
		if c := f.openCopy(name); c != nil {
			return c
		}
	}
	return nil
}

// tolerate returns an error of open unless the error may be temporary: rotation creates a file before it sets its
// permissions. It reports the first such error. open is tried again for closeAfter, or forever for a log that matches a
// pattern, because such a log must not stop the others.
func (t *tail) tolerate(err error, now time.Time) error {
	switch {
	case err == nil || !t.started.IsZero() && !errors.Is(err, fs.ErrPermission):
		t.denied = time.Time{}
		return err
	case t.denied.IsZero():
		t.denied = now
		t.note(fmt.Sprintf("%v; retrying", err))
	case !t.byPattern && now.Sub(t.denied) > closeAfter:
		return err
	}
	return nil
}

// close closes all files. openFiles remembers their offsets.
func (t *tail) close() error {
	var errs []error
	for _, f := range t.files {
		errs = append(errs, t.openFiles.close(f))
	}
	t.files = nil
	return errors.Join(errs...)
}
