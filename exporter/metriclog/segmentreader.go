package metriclog

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strconv"
)

// segmentReader reads a segment. The segment is authoritative; the index only speeds up reading. An index record counts
// only if the line at its offset belongs to its second. If the index is missing or incomplete, belongs to another
// segment, or has invalid records, reading is slower but correct.
//
// The reader skips lines that it cannot parse, and lines of seconds outside of the date in the file's name. See
// completeEnd for incomplete seconds.
type segmentReader struct {
	*os.File
	from, to int64 // range of seconds that the date in its name allows, see segment.span
	size     int64
}

// openSegment opens a segment with its current size. Later lines are not read.
func openSegment(dir string, s segment) (*segmentReader, error) {
	file, err := os.Open(filepath.Join(dir, s.name()))
	if err != nil {
		return nil, err
	}
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	from, to := s.span()
	return &segmentReader{file, from, to, size}, nil
}

// second returns the Unix time of a line. It returns 0, false if the line is malformed, or if its second is outside of
// [from, to).
func (o *segmentReader) second(line []byte) (second int64, ok bool) {
	stamp, _, ok := bytes.Cut(line[:min(len(line), maxTimestamp)], []byte("|"))
	ms, err := strconv.ParseInt(string(stamp), 10, 64)
	if second = ms / 1000; !ok || err != nil || ms <= 0 || second < o.from || second >= o.to {
		return 0, false
	}
	return second, true
}

// firstSecond returns the first second of the segment, or 0 if the beginning of the file has no valid line.
func (o *segmentReader) firstSecond() int64 {
	for _, size := range []int64{maxTimestamp, maxLine} { // usually the first line is valid
		begin := make([]byte, min(size, o.size))
		_, _ = o.ReadAt(begin, 0)
		for line := range bytes.Lines(begin) {
			if second, ok := o.second(line); ok {
				return second
			}
		}
	}
	return 0
}

// lastLine returns the last line that ends at the offset before or earlier, and the offset of its end. The line is
// empty if the file has no newline before the offset.
func (o *segmentReader) lastLine(before int64) (line []byte, end int64, err error) {
	for size := int64(4 << 10); ; size *= 16 { // most lines are shorter than 4 KiB
		tail := make([]byte, min(before, size))
		if _, err := o.ReadAt(tail, before-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
			return nil, 0, err
		}
		lineEnd := bytes.LastIndexByte(tail, '\n') + 1
		lineStart := bytes.LastIndexByte(tail[:max(lineEnd-1, 0)], '\n') + 1
		if lineStart > 0 || size >= before {
			return tail[lineStart:lineEnd], before - int64(len(tail)-lineEnd), nil
		}
	}
}

// completeEnd returns the end of the last complete second and its Unix time, or 0 if its line is unreadable.
//
// The total of inbound calls is the last line of a second. Without it, the second is being written, or a crash or power
// cut left it incomplete. Segments of Sentinel may have no totals. There, the last second is complete if the file ends
// with a newline. completeEnd decides by the last line, and by the last line of another second before it:
//
//	last line   line before its second        ends with newline  the last second is
//	---------   ----------------------        -----------------  ------------------
//	total       any                           any                complete
//	unreadable  any                           any                unknown; the result is 0
//	row         total                         any                incomplete
//	row         row without a total           yes                complete: the segment is Sentinel's
//	row         none: it is the first second  yes                incomplete if own or pending, otherwise complete
//	row         row or none                   no                 incomplete
//	row         unreadable                    any                see the next line before that, but skip rows
//
// An unreadable line may have been a total. Before such a line, only another total or the beginning of the file
// decides. With own, the segment belongs to this package; pending is the result of firstSecondPending.
func (o *segmentReader) completeEnd(own bool) (end, second int64, err error) {
	line, end, err := o.lastLine(o.size)
	second, ok := o.second(line)
	if err != nil || !ok || isTotal(line) {
		return end, second, err
	}
	start := end - int64(len(line)) // of the last second
	previous := int64(0)            // second before the last one
	for at, damaged := start, false; ; at -= int64(len(line)) {
		if line, _, err = o.lastLine(at); err != nil {
			return 0, 0, err
		}
		switch before, ok := o.second(line); { // not ok, and an empty line, at the beginning of the file
		case len(line) > 0 && !ok:
			damaged = true
		case ok && before == second:
			start, damaged = at-int64(len(line)), false
		case ok && damaged && !isTotal(line):
			previous = max(previous, before)
		case end == o.size && (ok && !isTotal(line) || !ok && !own && !o.firstSecondPending()):
			return end, second, nil
		default:
			return start, max(previous, before), nil
		}
	}
}

// firstSecondPending reports whether a Writer may be writing the first second of the segment: the index is empty, or
// the segment has grown since it was opened. A Writer creates the index before the first rows, and writes the first
// index record after them.
func (o *segmentReader) firstSecondPending() bool {
	at, err := os.Stat(o.Name() + idxSuffix)
	now, e := o.Stat()
	return e != nil || now.Size() != o.size || err == nil && at.Size() == 0
}

// maxLine is the maximum length of a line, including its newline. Longer lines are skipped.
const maxLine = 64 << 10

// lineReader reads a part of a segment line by line.
type lineReader struct {
	*bufio.Reader
	to        int64
	lineStart int64 // offset of the line that next has returned
	nextStart int64 // offset of the line that next returns
}

// newLineReader returns a lineReader for the lines that begin in [from, to). The file ends at end.
func newLineReader(r io.ReaderAt, from, to, end int64) *lineReader {
	return &lineReader{bufio.NewReaderSize(io.NewSectionReader(r, from, max(end-from, 0)), maxLine), to, from, from}
}

// next returns the next line without its newline; it returns an empty line instead of a line that is too long. The line
// is valid until the next call. At the end next returns io.EOF. It never returns bytes at the end of the file that have
// no newline.
func (l *lineReader) next() (line []byte, err error) {
	l.lineStart = l.nextStart
	if l.lineStart >= l.to {
		return nil, io.EOF
	}
	for long := false; ; long = true {
		line, err = l.ReadSlice('\n')
		l.nextStart += int64(len(line))
		switch {
		case err == nil && long:
			return nil, nil
		case err == nil:
			return line[:len(line)-1], nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// idxRecord is the size of an index record: the Unix time of a second and the offset of its first line, both big-endian
// int64. Records ascend. An index may lack records, and it may belong to another file, so a record is valid only if the
// line at its offset matches.
const idxRecord = 16

// appendRecord appends the index record of a second whose first line is at offset.
func appendRecord(b []byte, second, offset int64) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(second))
	return binary.BigEndian.AppendUint64(b, uint64(offset))
}

// index is an open index file.
type index struct {
	*os.File
	n int // number of records
}

// record returns the record with number i. If it cannot be read, record returns 0, -1, which matches no line.
func (x index) record(i int) (second, offset int64) {
	var b [idxRecord]byte
	if _, err := x.ReadAt(b[:], int64(i)*idxRecord); err != nil {
		return 0, -1
	}
	return int64(binary.BigEndian.Uint64(b[:])), int64(binary.BigEndian.Uint64(b[8:]))
}

// search returns the number of the first record of the second or a later one. It returns x.n if all records are
// earlier.
func (x index) search(second int64) int {
	return sort.Search(x.n, func(i int) bool {
		s, _ := x.record(i)
		return s >= second
	})
}

// matches reports whether an index record is valid: a line of the second begins at the offset.
func (o *segmentReader) matches(second, offset int64) bool {
	if second < o.from || second >= o.to || offset < 0 {
		return false
	}
	stamp := []byte("\n" + strconv.FormatInt(second*1000, 10) + "|")
	if offset == 0 {
		stamp = stamp[1:]
	} else {
		offset--
	}
	got := make([]byte, len(stamp))
	_, err := o.ReadAt(got, offset)
	return err == nil && bytes.Equal(got, stamp)
}

// bisect returns a byte range [low, high) that contains all lines of the seconds from..to. It finds the range by a
// binary search in the index. Without a valid index, the range is the whole file. The error means that the index cannot
// be read; the range is valid.
func (o *segmentReader) bisect(from, to int64) (low, high int64, err error) {
	low, high = 0, o.size
	file, err := os.Open(o.Name() + idxSuffix)
	if errors.Is(err, os.ErrNotExist) {
		return low, high, nil
	}
	if err != nil {
		return low, high, err
	}
	defer file.Close() //nolint:errcheck // opened for reading only
	size, _ := file.Seek(0, io.SeekEnd)
	x := index{file, int(size / idxRecord)}
	if i := x.search(from); i > 0 {
		if second, offset := x.record(i - 1); o.matches(second, offset) {
			low = offset
		}
	}
	if i := x.search(to + 1); i < x.n {
		if second, offset := x.record(i); o.matches(second, offset) {
			high = offset
		}
	}
	return low, high, nil
}
