package replay

import (
	"bytes"
	"errors"
	"io"
	"os"
	"runtime"
	"time"
)

// followedFile is a file of a log that grows. Its device and inode and its first bytes identify it, never its name, so
// a renamed file keeps its offset. An archive is a finished copy of such a file, which may be packed; it is read once
// to its end.
//
// The table lists the events that change a log, the evidence by which [tail] detects them, and what it reads next.
// Times are constants below. Lost lines and bytes are counted and reported, with one exception, marked in the table.
//
//	event                    evidence                    read next                       lost
//	rename, then create      the name leads to another   the old file, until it has not  nothing
//	                         device and inode            grown for closeAfter; then the
//	                                                     new file from its start
//	rename into another      as above; the open file     as above                        nothing
//	directory                stays readable
//	symbolic link changes    as above                    as above                        nothing
//	rename, then gzip        the open file has lost its  the open file to its end. The   nothing
//	                         name                        archive is not read: its first
//	                                                     bytes match an existing file
//	copy, then truncate      the size is below the       the copy from the offset on,    lines between copy and
//	                         offset, or the last bytes   then the file from its start    truncation (Truncated),
//	                         before the offset changed                                   and bytes in no copy (Cut)
//	copy, then truncate; the the last bytes before the   as above. The file begins with  as above
//	writer does not append   offset became NULs          a hole up to the writer's
//	                                                     offset; the hole is skipped
//	copy, then truncate; the none                        the file from its start         lines before the
//	file was empty at the                                                                truncation: NOT reported
//	last poll
//	several of these         files in the log's          every file whose first bytes    as above
//	between two polls        directories that changed    are new, the earliest first
//	                         since the last poll
//	restart of windowstat    the last second of the      as above, for all files that    files that were removed:
//	                         metric log                  changed since then              a message names the gap
//	NULs after a power cut   a line begins with NULs     the line without them           lines that became NULs
//
// The fields describe the bytes of the file like this:
//
//	0        start.hole         offset                  size
//	|  NULs  |  lines were read  |  lines to be read     |
//	         [start.head]  [last]                           both at most fingerprintBytes
//
// A followedFile is not safe for concurrent use.
type followedFile struct {
	lines   blocks
	archive *file // not nil for an archive; then the fields below are not used

	*os.File             // nil once it is closed
	log      string      // name of the log that it belongs to
	id       os.FileInfo // device and inode
	start    fingerprint // first bytes of the part that was read
	last     []byte      // the bytes before offset, at most fingerprintBytes
	offset   int64       // number of bytes that were read or skipped
	size     int64       // at the last poll
	grown    time.Time   // time of the last poll that found new bytes
}

// fingerprintBytes is the number of bytes that identify the start of a file, and the number of bytes before the offset
// that detect a truncation. They contain the times of lines. The inode is not enough, because a deleted file's inode is
// reused; nor is the size, because a truncated file may grow beyond the offset before the next poll.
const fingerprintBytes = 512

// fingerprint is the start of a file: the length of the hole of NULs, usually 0, and the first bytes after the hole.
type fingerprint struct {
	hole int64
	head []byte // at most fingerprintBytes
}

// matches reports whether two files start with the same bytes, up to the shorter of the two heads. Two empty heads do
// not match.
func (f fingerprint) matches(o fingerprint) bool {
	n := min(len(f.head), len(o.head))
	return n > 0 && f.hole == o.hole && bytes.Equal(f.head[:n], o.head[:n])
}

// add appends bytes that were read at the start of a file, and returns them without the hole.
func (f *fingerprint) add(b []byte) []byte {
	if len(f.head) == 0 {
		n := len(b)
		b = bytes.TrimLeft(b, "\x00")
		f.hole += int64(n - len(b))
	}
	f.head = append(f.head, b[:min(len(b), fingerprintBytes-len(f.head))]...)
	return b
}

// startReader skips the hole at the start of a file, and records the fingerprint of the file.
type startReader struct {
	io.Reader
	start fingerprint
}

// Read implements io.Reader.
func (r *startReader) Read(b []byte) (int, error) {
	if len(r.start.head) == fingerprintBytes {
		return r.Reader.Read(b)
	}
	for {
		n, err := r.Reader.Read(b)
		if read := copy(b, r.start.add(b[:n])); read > 0 || n == 0 || err != nil {
			return read, err
		}
	}
}

// rewind resets f to the start of the file after a truncation. It forgets the content, including the beginning of an
// incomplete line.
func (f *followedFile) rewind(now time.Time) {
	*f = followedFile{File: f.File, log: f.log, id: f.id, grown: now}
	f.lines.r, f.lines.grows = f, true
}

// seekEnd skips the current content. If the file ends within a line, it also skips the rest of that line.
func (f *followedFile) seekEnd() error {
	now, err := f.Stat()
	if err != nil {
		return err
	}
	f.size = now.Size()
	r := startReader{Reader: io.NewSectionReader(f.File, 0, f.size)}
	f.skipHole(&r.start, f.size)
	r.Reader = io.NewSectionReader(f.File, r.start.hole, f.size-r.start.hole)
	if _, err := io.CopyN(io.Discard, &r, fingerprintBytes); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	f.start, f.offset = r.start, f.size
	f.last = make([]byte, min(fingerprintBytes, f.size))
	if n, err := f.ReadAt(f.last, f.size-int64(len(f.last))); n < len(f.last) {
		return err
	}
	f.lines.skip = len(f.last) > 0 && f.last[len(f.last)-1] != '\n'
	return nil
}

// skipHole advances start.hole to the first data of the file, at most to end, if the file system can find it without
// reading. A writer without O_APPEND may leave a hole of many gigabytes.
func (f *followedFile) skipHole(start *fingerprint, end int64) {
	const seekData = 3 // SEEK_DATA of lseek(2)
	if runtime.GOOS != "linux" || len(start.head) > 0 {
		return
	}
	if data, err := f.Seek(start.hole, seekData); err == nil {
		start.hole = max(start.hole, min(data, end))
	}
}

// Read reads the bytes after the offset, without the hole at the start of the file. It maintains start and last.
func (f *followedFile) Read(b []byte) (int, error) {
	if f.offset == f.start.hole && len(f.start.head) == 0 {
		f.skipHole(&f.start, f.size)
		f.offset = f.start.hole
	}
	for {
		n, err := f.ReadAt(b, f.offset)
		read := b[:n]
		if f.offset == f.start.hole+int64(len(f.start.head)) {
			read = f.start.add(read)
		}
		f.offset += int64(n)
		f.last = append(f.last, b[max(0, n-fingerprintBytes):n]...)
		f.last = append(f.last[:0], f.last[max(0, len(f.last)-fingerprintBytes):]...)
		if copy(b, read); len(read) > 0 || n == 0 || err != nil {
			return len(read), err
		}
	}
}

// truncated reports whether the file no longer has the bytes that were read: it is shorter than the offset, or the
// bytes before the offset changed. The second check detects a file that has grown beyond the offset again. size is its
// current size.
func (f *followedFile) truncated(size int64) bool {
	if size < f.offset {
		return true
	}
	var now [fingerprintBytes]byte
	n, _ := f.ReadAt(now[:len(f.last)], f.offset-int64(len(f.last)))
	return !bytes.Equal(now[:n], f.last)
}

// next returns the whole lines after the offset, if any. Its buffer is no larger than the new bytes, because thousands
// of files may be followed.
func (f *followedFile) next(now time.Time) (block, error) {
	if f.size <= f.offset {
		return block{}, nil
	}
	f.grown = now
	return f.lines.next(make([]byte, 0, min(f.size-f.offset+int64(len(f.lines.rest)), blockSize)))
}

// incomplete returns the last line of a file that no longer grows, if the line has no newline.
func (f *followedFile) incomplete() block {
	rest := f.lines.rest
	f.lines.rest = nil
	return block{data: rest}
}

// openArchive opens a file that no longer grows.
func openArchive(name string) (*followedFile, error) {
	f, err := open(name, nil)
	if err != nil {
		return nil, err
	}
	return &followedFile{archive: f, lines: blocks{r: f}}, nil
}

// openCopy opens a copy of f that was made before f was truncated, as an archive at the offset of f. It returns nil if
// the file is not such a copy.
func (f *followedFile) openCopy(name string) *followedFile {
	c, err := openArchive(name)
	if err != nil {
		return nil
	}
	if f.seekCopy(c) {
		c.lines.rest, c.lines.skip = f.lines.rest, f.lines.skip
		return c
	}
	_ = c.archive.close()
	return nil
}

// seekCopy advances the archive c to the offset of f, and reports whether c has the bytes that were read from f. It
// compares the head and the bytes before the offset. A packed archive must be decompressed up to the offset; other
// copies are read only there.
func (f *followedFile) seekCopy(c *followedFile) bool {
	head := make([]byte, len(f.start.head))
	if _, err := io.ReadFull(c.archive, head); err != nil || c.archive.start.hole != f.start.hole ||
		!bytes.Equal(head, f.start.head) {
		return false
	}
	at, last := f.start.hole+int64(len(head)), f.offset-int64(len(f.last))
	if c.archive.packed {
		if last < at { // the head includes some of the last bytes
			_, err := io.CopyN(io.Discard, c.archive, f.offset-at)
			return err == nil
		}
		if _, err := io.CopyN(io.Discard, c.archive, last-at); err != nil {
			return false
		}
	} else {
		c.lines.r = io.NewSectionReader(c.archive.raw, last, 1<<62)
	}
	now := make([]byte, len(f.last))
	var r io.Reader = c.archive
	if !c.archive.packed {
		r = c.lines.r
	}
	_, err := io.ReadFull(r, now)
	return err == nil && bytes.Equal(now, f.last)
}
