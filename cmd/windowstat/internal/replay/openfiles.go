package replay

import (
	"errors"
	"io"
	"os"
	"slices"
	"time"
)

// openFiles holds the files that the logs of a Follower have read. It ensures that no line is read twice, whichever
// name a file gets. Its entries are of three kinds:
//
//	open     has a File                               its log reads it
//	closed   has an id, offset and start, but no File its log has read it; it continues at the offset if it grows
//	copied   has only a start                         a truncated file or an archive; its copies are not read
type openFiles []*followedFile

// maxClosed is the number of entries above which the oldest one without a File is dropped.
const maxClosed = 1000

// has reports whether a file is open, under any name.
func (o openFiles) has(id os.FileInfo) bool {
	return slices.ContainsFunc(o, func(f *followedFile) bool { return f.File != nil && os.SameFile(f.id, id) })
}

// knows reports whether the log reads or has read a file with this start. It reads the start of an open file, because
// its log may not have read it yet.
func (o openFiles) knows(log string, start fingerprint) bool {
	return slices.ContainsFunc(o, func(f *followedFile) bool {
		if f.log != log {
			return false
		}
		if f.File == nil || f.start.matches(start) {
			return f.start.matches(start)
		}
		r := startReader{Reader: io.NewSectionReader(f.File, 0, start.hole+fingerprintBytes)}
		_, _ = io.CopyN(io.Discard, &r, fingerprintBytes)
		return r.start.matches(start)
	})
}

// open opens a file of a log. A file that was read before continues at its offset. open returns nil if the file does
// not exist or is open already.
func (o *openFiles) open(log, name string, now time.Time) (*followedFile, error) {
	opened, err := os.Open(name)
	if notThere(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	id, err := opened.Stat()
	if err != nil || o.has(id) {
		return nil, errors.Join(err, opened.Close())
	}
	f := &followedFile{File: opened, log: log, id: id}
	f.rewind(now)
	closed := func(x *followedFile) bool { return x.id != nil && os.SameFile(x.id, id) }
	if i := slices.IndexFunc(*o, closed); i >= 0 {
		before := (*o)[i]
		f.offset, f.size, f.start, f.last = before.offset, before.offset, before.start, before.last
		if *o = slices.Delete(*o, i, i+1); f.truncated(id.Size()) { // another file with the same inode
			f.rewind(now)
		}
	}
	*o = append(*o, f)
	return f, nil
}

// close closes a file. It remembers the offset of a file that may grow.
func (o *openFiles) close(f *followedFile) error {
	if f.archive != nil {
		return f.archive.close()
	}
	err := f.File.Close()
	*f = followedFile{log: f.log, id: f.id, offset: f.offset, start: f.start, last: f.last}
	o.forget()
	return err
}

// remember records the start of a file that has copies which must not be read: a truncated file or an archive.
func (o *openFiles) remember(log string, start fingerprint) {
	*o = append(*o, &followedFile{log: log, start: start})
	o.forget()
}

// forget removes the oldest entry without a File if there are too many entries.
func (o *openFiles) forget() {
	closed := func(f *followedFile) bool { return f.File == nil }
	if i := slices.IndexFunc(*o, closed); len(*o) > maxClosed {
		*o = slices.Delete(*o, i, i+1)
	}
}
