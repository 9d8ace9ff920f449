package replay

import (
	"errors"
	"io"
	"os"
	"slices"
	"time"
)

// openFiles holds the files that the logs of a Follower read, and those that they have read, which have no File any
// more. It ensures that no line is read twice, whatever name a file gets.
type openFiles []*followedFile

// maxClosed is the number of closed files that are remembered at least.
const maxClosed = 1000

// has reports whether a file is open.
func (o openFiles) has(id os.FileInfo) bool {
	return slices.ContainsFunc(o, func(f *followedFile) bool { return f.File != nil && os.SameFile(f.id, id) })
}

// knows reports whether a log reads or has read a file with this start. The start of an open file may not be read yet.
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

// open opens a file of a log, at the offset up to which it was read before. It returns nil if the file does not exist
// or is open already.
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

// close closes a file. If the file may grow, its offset is remembered.
func (o *openFiles) close(f *followedFile) error {
	if f.archive != nil {
		return f.archive.close()
	}
	err := f.File.Close()
	*f = followedFile{log: f.log, id: f.id, offset: f.offset, start: f.start, last: f.last}
	o.forget()
	return err
}

// remember records the start of a file of a log that was truncated, and of which copies may exist, or that is packed.
func (o *openFiles) remember(log string, start fingerprint) {
	*o = append(*o, &followedFile{log: log, start: start})
	o.forget()
}

// forget removes the oldest closed file if there are too many.
func (o *openFiles) forget() {
	closed := func(f *followedFile) bool { return f.File == nil }
	if i := slices.IndexFunc(*o, closed); len(*o) > maxClosed {
		*o = slices.Delete(*o, i, i+1)
	}
}
