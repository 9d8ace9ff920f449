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

// segmentReader reads one file of a log, with its index.
//
// The data file tells what there is, and the index only where. A second is complete if its last line is the total of inbound
// calls, which is written last; see completeEnd for files that other programs wrote. An index record counts only if the line at its
// offset is of its second, so an index that is missing, of another file, cut off or behind makes reading slower and not wrong. Lines
// of seconds that the date in the file's name does not allow are skipped, as are those that cannot be parsed.
type segmentReader struct {
	from, to  int64 // seconds that the date in its name allows
	data, idx *os.File
	n         int   // index records; 0 if there is no index
	size      int64 // of the data file
}

// openSegment opens a file with its present size: what is appended later is not read.
func openSegment(dir string, s segment) (_ *segmentReader, err error) {
	o := &segmentReader{}
	o.from, o.to = s.span()
	defer func() {
		if err != nil {
			err = errors.Join(err, o.Close())
		}
	}()
	path := filepath.Join(dir, s.name())
	// The index first: seconds that are in it now are complete in the file.
	if err := o.openIndex(path); err != nil {
		return o, err
	}
	if o.data, err = os.Open(path); err != nil {
		return o, err
	}
	info, err := o.data.Stat()
	if err != nil {
		return o, err
	}
	o.size = info.Size()
	if o.idx == nil { // both may just have been made; its records may be of later seconds
		err = o.openIndex(path)
		o.n = 0
	}
	return o, err
}

// openIndex opens the index of a file, if there is one.
func (o *segmentReader) openIndex(path string) error {
	idx, err := os.Open(path + idxSuffix)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	o.idx = idx
	info, err := idx.Stat()
	if err == nil {
		o.n = int(info.Size() / idxRecord)
	}
	return err
}

// Close closes both files.
func (o *segmentReader) Close() error {
	var errs []error
	for _, file := range []*os.File{o.data, o.idx} {
		if file != nil {
			errs = append(errs, file.Close())
		}
	}
	return errors.Join(errs...)
}

// closeIndex closes the index. From then on reads do without.
func (o *segmentReader) closeIndex() (err error) {
	if o.idx != nil {
		err = o.idx.Close()
	}
	o.idx, o.n = nil, 0
	return err
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
	_, err := o.data.ReadAt(got, offset)
	return err == nil && bytes.Equal(got, stamp)
}

// lastIndexed returns the last second in the index if it is in the file, too; 0 if not.
func (o *segmentReader) lastIndexed() int64 {
	if o.n == 0 {
		return 0
	}
	if second, offset := o.record(o.n - 1); o.matches(second, offset) {
		return second
	}
	return 0
}

// bisect narrows down by the index where a second begins: no line of it, or of a later one, begins before low, and none of an
// earlier one at high or behind it. Without an index, or with one that is wrong, that is the whole file.
func (o *segmentReader) bisect(second int64) (low, high int64) {
	low, high = 0, o.size
	i := o.search(second)
	if i > 0 {
		if at, offset := o.record(i - 1); o.matches(at, offset) {
			low = offset
		}
	}
	if i < o.n {
		if at, offset := o.record(i); o.matches(at, offset) {
			high = offset
		}
	}
	return low, high
}

// lastLine returns the last line that ends at an offset or before it, and its end. If it is empty, no line ends there.
func (o *segmentReader) lastLine(before int64) (line []byte, end int64, err error) {
	for size := int64(4 << 10); ; size *= 16 { // most lines are short
		tail := make([]byte, min(before, size))
		if _, err := o.data.ReadAt(tail, before-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
			return nil, 0, err
		}
		whole := bytes.LastIndexByte(tail, '\n') + 1
		began := bytes.LastIndexByte(tail[:max(whole-1, 0)], '\n') + 1
		if began > 0 || size >= before {
			return tail[began:whole], before - int64(len(tail)-whole), nil
		}
	}
}

// completeEnd returns the end of the last complete second. A second that is being written, or that a crash or power cut left
// incomplete, lacks the total of inbound calls as its last line. Files of Sentinel may lack it everywhere, so that the second before
// does, too: there a second is complete if its lines are, and the index has it or is none of this file. ours says that the first
// second of the file is not Sentinel's, which cannot be told from its lines.
func (o *segmentReader) completeEnd(ours bool) (int64, error) {
	line, end, err := o.lastLine(o.size)
	if err != nil {
		return 0, err
	}
	second, ok := secondOf(line)
	if !ok || second < o.from || second >= o.to || isTotal(line) {
		return end, nil
	}
	began := end
	// The second begins behind the last index record that is not later.
	low, high := o.bisect(second)
	for lines := newLineReader(o.data, low, high, end); ; {
		line, err := lines.next()
		if got, ok := secondOf(line); err != nil || ok && got == second {
			began = min(end, lines.began)
			break
		}
	}
	before, beforeEnd, err := o.lastLine(began)
	if err != nil {
		return 0, err
	}
	last := o.lastIndexed()
	sentinel := !ours && (o.idx == nil || last > 0) // or the first second is being written, and has no record yet
	if began > 0 {
		sentinel = beforeEnd != began || !isTotal(before)
	}
	if sentinel && end == o.size && (last == 0 || second <= last) {
		return end, nil
	}
	return began, nil
}

// lastSecond returns the last second of a file; 0 if there is none.
func lastSecond(dir string, s segment) (int64, error) {
	o, err := openSegment(dir, s)
	if err != nil {
		return 0, err
	}
	last, err := o.last()
	return last, errors.Join(err, o.Close())
}

// last returns the last second of the file; 0 if there is none.
func (o *segmentReader) last() (int64, error) {
	end, err := o.completeEnd(false)
	if err != nil {
		return 0, err
	}
	line, _, err := o.lastLine(end)
	if err != nil {
		return 0, err
	}
	last := o.lastIndexed()
	if second, ok := secondOf(line); ok && second < o.to {
		last = max(last, second)
	}
	return last, nil
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

// parseRecord is the inverse of appendRecord.
func parseRecord(b []byte) (second, offset int64) {
	return int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint64(b[8:]))
}

// record reads a record of the index. One that cannot be read is 0, -1, which no line matches.
func (o *segmentReader) record(i int) (second, offset int64) {
	var b [idxRecord]byte
	if _, err := o.idx.ReadAt(b[:], int64(i)*idxRecord); err != nil {
		return 0, -1
	}
	return parseRecord(b[:])
}

// search returns the number of the first index record of this second or a later one, n if there is none.
func (o *segmentReader) search(second int64) int {
	return sort.Search(o.n, func(i int) bool {
		s, _ := o.record(i)
		return s >= second
	})
}
