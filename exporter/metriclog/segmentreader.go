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

// segmentReader reads one file of a log.
//
// The data file tells what there is, and the index only where. A second is complete if its last line is the total of inbound
// calls, which is written last; see completeEnd for files that other programs wrote. An index record counts only if the line at its
// offset is of its second, so an index that is missing, of another file, cut off or behind makes reading slower and not wrong. Lines
// of seconds that the date in the file's name does not allow are skipped, as are those that cannot be parsed.
type segmentReader struct {
	*os.File
	from, to int64 // seconds that the date in its name allows
	size     int64
}

// openSegment opens a file with its present size: what is appended later is not read.
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

// second returns the second of a line. It is 0, false for one that is malformed, or of a second that the file cannot have.
func (o *segmentReader) second(line []byte) (second int64, ok bool) {
	stamp, _, ok := bytes.Cut(line[:min(len(line), maxStamp)], []byte("|"))
	ms, err := strconv.ParseInt(string(stamp), 10, 64)
	if second = ms / 1000; !ok || err != nil || ms <= 0 || second < o.from || second >= o.to {
		return 0, false
	}
	return second, true
}

// firstSecond returns the first second of the file; 0 if there is none near the beginning.
func (o *segmentReader) firstSecond() int64 {
	for _, size := range []int64{maxStamp, maxLine} { // mostly the first line is valid
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

// lastLine returns the last line that ends at an offset or before it, and its end. If it is empty, no line ends there.
func (o *segmentReader) lastLine(before int64) (line []byte, end int64, err error) {
	for size := int64(4 << 10); ; size *= 16 { // most lines are short
		tail := make([]byte, min(before, size))
		if _, err := o.ReadAt(tail, before-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
			return nil, 0, err
		}
		whole := bytes.LastIndexByte(tail, '\n') + 1
		began := bytes.LastIndexByte(tail[:max(whole-1, 0)], '\n') + 1
		if began > 0 || size >= before {
			return tail[began:whole], before - int64(len(tail)-whole), nil
		}
	}
}

// completeEnd returns the end of the last complete second, and that second; 0 if it cannot be read. A second that is being written, or
// that a crash or power cut left incomplete, lacks the total of inbound calls as its last line. Files of Sentinel may lack it everywhere,
// so that the line before the second is no total, either: there the last second is complete if its last line is. A damaged line may have
// been that total, so any earlier one tells. ours says that the first second of the file is not Sentinel's.
func (o *segmentReader) completeEnd(ours bool) (end, second int64, err error) {
	line, end, err := o.lastLine(o.size)
	second, ok := o.second(line)
	if err != nil || !ok || isTotal(line) {
		return end, second, err
	}
	began, last := end-int64(len(line)), int64(0) // of the second, and the one before it
	for at, damaged := began, false; ; at -= int64(len(line)) {
		if line, _, err = o.lastLine(at); err != nil {
			return 0, 0, err
		}
		switch before, ok := o.second(line); {
		case len(line) > 0 && !ok:
			damaged = true
		case ok && before == second:
			began, damaged = at-int64(len(line)), false
		case ok && damaged && !isTotal(line):
			last = max(last, before)
		case end == o.size && (ok && !isTotal(line) || !ok && !ours && !o.begun()):
			return end, second, nil
		default:
			return began, max(last, before), nil
		}
	}
}

// begun reports whether the first second may be being written: a Writer makes the index before, and its first record after that.
func (o *segmentReader) begun() bool {
	at, err := os.Stat(o.Name() + idxSuffix)
	now, e := o.Stat()
	return e != nil || now.Size() != o.size || err == nil && at.Size() == 0
}

// maxLine is the longest line, with its newline; longer ones are skipped.
const maxLine = 64 << 10

// lineReader reads a part of a file line by line.
type lineReader struct {
	*bufio.Reader
	to    int64
	began int64 // offset of the last line
	after int64 // offset of the next line
}

// newLineReader reads the lines that begin in [from, to). The file ends at end.
func newLineReader(r io.ReaderAt, from, to, end int64) *lineReader {
	return &lineReader{bufio.NewReaderSize(io.NewSectionReader(r, from, max(end-from, 0)), maxLine), to, from, from}
}

// next returns a line without its newline, empty if it is too long. The line is valid until the next call. Bytes without a
// newline at the end of the file are not a line: the error is io.EOF then, as at the end.
func (l *lineReader) next() (line []byte, err error) {
	l.began = l.after
	if l.began >= l.to {
		return nil, io.EOF
	}
	for long := false; ; long = true {
		line, err = l.ReadSlice('\n')
		l.after += int64(len(line))
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

// idxRecord is the size of an index record: the Unix time of a second and the offset of its first line. Records ascend. Some
// may be missing, and an index may be another file's: a record is valid only if the line at its offset matches.
const idxRecord = 16

// appendRecord appends the index record of a second whose first line is at offset.
func appendRecord(b []byte, second, offset int64) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(second))
	return binary.BigEndian.AppendUint64(b, uint64(offset))
}

// index is an open index.
type index struct {
	*os.File
	n int // records
}

// record reads a record. One that cannot be read is 0, -1, which no line matches.
func (x index) record(i int) (second, offset int64) {
	var b [idxRecord]byte
	if _, err := x.ReadAt(b[:], int64(i)*idxRecord); err != nil {
		return 0, -1
	}
	return int64(binary.BigEndian.Uint64(b[:])), int64(binary.BigEndian.Uint64(b[8:]))
}

// search returns the number of the first record of this second or a later one, n if there is none.
func (x index) search(second int64) int {
	return sort.Search(x.n, func(i int) bool {
		s, _ := x.record(i)
		return s >= second
	})
}

// matches reports whether a line of this second begins at the offset, as an index record says.
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

// bisect narrows down by the index where the seconds from and to and those between are: no line of them, or of a later one, begins
// before low, and none of them or of an earlier one at high or behind it. Without an index, or with one that is wrong or cannot be
// read, which is the error, that is the whole file.
func (o *segmentReader) bisect(from, to int64) (low, high int64, err error) {
	low, high = 0, o.size
	file, err := os.Open(o.Name() + idxSuffix)
	if errors.Is(err, os.ErrNotExist) {
		return low, high, nil
	}
	if err != nil {
		return low, high, err
	}
	defer file.Close() //nolint:errcheck // it was only read
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
