package replay

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"time"
)

// part is one file of a log that grows. It is known by its device, its inode and its first bytes, whatever its name is. One that rotation has put
// aside for good is read to its end, and then closed; any other as long as it grows.
type part struct {
	lines blocks
	aside *file // nil if the file may grow; then the fields below are set

	*os.File
	log    string // that it is of
	at     os.FileInfo
	head   []byte // its first bytes, as far as they are known: others there tell that the file was truncated and has grown again
	offset int64  // up to which it was read
	size   int64  // the last that was seen
	grown  time.Time
}

// headBytes is how many of a file's first bytes are remembered: they have the time of a line. They tell more than the inode, which another
// file may get as soon as this one is deleted, and more than the size, which may be what it was when the file was truncated and has grown
// again.
const headBytes = 512

// openAside opens a file to which nothing is written any more; it may be packed.
func openAside(name string) (*part, error) {
	f, err := open(name, nil)
	if err != nil {
		return nil, err
	}
	return &part{aside: f, lines: blocks{r: f}}, nil
}

// rewind begins at the beginning. What was known of the file is forgotten, also the beginning of a line that was not complete.
func (p *part) rewind(now time.Time) {
	*p = part{File: p.File, log: p.log, at: p.at, grown: now}
	p.lines.r, p.lines.grows = p, true
}

// toEnd skips what the file has, and the rest of a line that is not complete.
func (p *part) toEnd() error {
	own, err := p.Stat()
	if err != nil {
		return err
	}
	p.offset, p.size = own.Size(), own.Size()
	p.head = make([]byte, min(headBytes, p.size))
	if n, err := p.ReadAt(p.head, 0); n < len(p.head) {
		return err
	}
	var last [1]byte
	if p.size > 0 {
		_, err = p.ReadAt(last[:], p.size-1)
		p.lines.skip = last[0] != '\n'
	}
	return err
}

// Read reads what follows.
func (p *part) Read(b []byte) (int, error) {
	n, err := p.ReadAt(b, p.offset)
	// The beginning is kept as it is read: only what was read can be missing later.
	if known := int64(len(p.head)); known < headBytes && known == p.offset {
		p.head = append(p.head, b[:min(n, headBytes-len(p.head))]...)
	}
	p.offset += int64(n)
	return n, err
}

// truncated reports whether what was read is not in the file any more.
func (p *part) truncated(size int64) bool {
	if size < p.offset {
		return true
	}
	var now [headBytes]byte
	n, _ := p.ReadAt(now[:len(p.head)], 0)
	return !bytes.Equal(now[:n], p.head)
}

// next reads whole lines, if there are any, into as little memory as they take.
func (p *part) next(now time.Time) (block, error) {
	if p.size <= p.offset {
		return block{}, nil
	}
	p.grown = now
	return p.lines.next(make([]byte, 0, min(p.size-p.offset+int64(len(p.lines.rest)), blockSize)))
}

// incomplete returns the line that is not complete, when no more of it will come.
func (p *part) incomplete() block {
	rest := p.lines.rest
	p.lines.rest = nil
	return block{data: rest}
}

// opened are the files that the logs of a Follower read, and those that they have read, which have no File any more: whatever name a file
// gets, no line of it is read twice.
type opened []*part

// maxOpened is how many files are remembered at least.
const maxOpened = 1000

// has reports whether a file is open.
func (o opened) has(at os.FileInfo) bool {
	return slices.ContainsFunc(o, func(p *part) bool { return p.File != nil && os.SameFile(p.at, at) })
}

// begins reports whether a file of a log that is or was read begins so. What an open one has may not be read yet.
func (o opened) begins(log string, head []byte) bool {
	like := func(known []byte) bool {
		n := min(len(known), len(head))
		return n > 0 && bytes.Equal(known[:n], head[:n])
	}
	return slices.ContainsFunc(o, func(p *part) bool {
		switch {
		case p.log != log:
			return false
		case p.File == nil || like(p.head):
			return like(p.head)
		}
		var now [headBytes]byte
		n, _ := p.ReadAt(now[:], 0)
		return like(now[:n])
	})
}

// file opens a file of a log by its name, behind what was read of it before; nil if there is none, or one that is open already.
func (o *opened) file(log, name string, now time.Time) (*part, error) {
	f, err := os.Open(name)
	if notThere(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	at, err := f.Stat()
	if err != nil || o.has(at) {
		return nil, errors.Join(err, f.Close())
	}
	p := &part{File: f, log: log, at: at}
	p.rewind(now)
	// A file that comes back under another name, or under its old one, goes on where its reading ended.
	if i := slices.IndexFunc(*o, func(x *part) bool { return os.SameFile(x.at, at) }); i >= 0 {
		before := (*o)[i]
		p.offset, p.size, p.head = before.offset, before.offset, before.head
		if *o = slices.Delete(*o, i, i+1); p.truncated(at.Size()) { // it is another one, with the same number
			p.rewind(now)
		}
	}
	*o = append(*o, p)
	return p, nil
}

// close closes a file, and remembers how far it was read if it may grow.
func (o *opened) close(p *part) error {
	if p.aside != nil {
		return p.aside.close()
	}
	err := p.File.Close()
	*p = part{log: p.log, at: p.at, offset: p.offset, head: p.head}
	o.forget()
	return err
}

// remember remembers how a file of a log began that was truncated, so that there may be copies of it, or that is packed.
func (o *opened) remember(log string, head []byte) {
	*o = append(*o, &part{log: log, head: head})
	o.forget()
}

// forget forgets the first file that is not open, if there are too many.
func (o *opened) forget() {
	if i := slices.IndexFunc(*o, func(x *part) bool { return x.File == nil }); len(*o) > maxOpened {
		*o = slices.Delete(*o, i, i+1)
	}
}
