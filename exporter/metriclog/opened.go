package metriclog

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// opened is a file of a log that is open for reading, with its index.
type opened struct {
	format
	from, to  int64 // seconds of other times are out of place in it
	data, idx *os.File
	index     // without records if there is no index
	size      int64
}

// openSegment opens a file. Nothing that it has later is read.
func openSegment(dir string, s segment, f format) (_ *opened, err error) {
	o := &opened{format: f}
	o.from, o.to = s.span()
	defer func() {
		if err != nil {
			err = errors.Join(err, o.Close())
		}
	}()
	path := filepath.Join(dir, s.name())
	// The index first: a second that is in it then, is in the file as a whole.
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
	if o.idx == nil { // both may just have been made: then there is one, but what it has now is of later
		err = o.openIndex(path)
		o.n = 0
	}
	return o, err
}

// openIndex opens the index of a file, if there is one.
func (o *opened) openIndex(path string) error {
	idx, err := os.Open(path + idxSuffix)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	o.idx = idx
	info, err := idx.Stat()
	o.index = index{idx, 0}
	if err == nil {
		o.n = int(info.Size() / idxRecord)
	}
	return err
}

// Close closes what is open of both files.
func (o *opened) Close() error {
	var errs []error
	for _, file := range []*os.File{o.data, o.idx} {
		if file != nil {
			errs = append(errs, file.Close())
		}
	}
	return errors.Join(errs...)
}

// closeIndex closes the index, which is as if there were none from then on.
func (o *opened) closeIndex() (err error) {
	if o.idx != nil {
		err = o.idx.Close()
	}
	o.idx, o.index = nil, index{}
	return err
}

// agrees reports whether a line of this second begins at the offset, as a record of the index says.
func (o *opened) agrees(second, offset int64) bool {
	if second < o.from || second >= o.to || offset < 0 {
		return false
	}
	stamp := []byte("\n" + o.begin + strconv.FormatInt(second*1000, 10) + o.end)
	if offset == 0 {
		stamp = stamp[1:]
	} else {
		offset--
	}
	got := make([]byte, len(stamp))
	_, err := o.data.ReadAt(got, offset)
	return err == nil && bytes.Equal(got, stamp)
}

// lastIndexed is the last second in the index, if it is in the file, too; 0 if not.
func (o *opened) lastIndexed() int64 {
	if o.n == 0 {
		return 0
	}
	if second, offset := o.record(o.n - 1); o.agrees(second, offset) {
		return second
	}
	return 0
}

// place is where a second has its place: no line of it, or of a later one, begins before low, and no line of an
// earlier one at high or behind it. The two are not far apart. It is found by bisecting the index, and the file where
// the index does not say it or what it says is wrong.
func (o *opened) place(from int64) (low, high int64) {
	low, high = 0, o.size
	i := o.after(from)
	if i > 0 {
		if second, offset := o.record(i - 1); o.agrees(second, offset) {
			low = offset
		}
	}
	if i < o.n {
		if second, offset := o.record(i); o.agrees(second, offset) {
			high = offset
		}
	}
	const near = 256 << 10
	for high-low > near {
		middle := low + (high-low)/2
		offset, second, ok := o.line(middle, high)
		if ok && second < from {
			low = offset
		} else {
			high = middle
		}
	}
	return low, high
}

// line finds the first line that begins at an offset or behind it, and before another.
func (o *opened) line(offset, before int64) (at, second int64, ok bool) {
	buf := make([]byte, 4<<10)
	for offset--; offset < before; { // from the newline before it
		n, err := o.data.ReadAt(buf, offset)
		b := buf[:n]
		end := bytes.IndexByte(b, '\n')
		if end < 0 || end == n-1 {
			if err != nil {
				return 0, 0, false
			}
			offset += int64(max(n-1, 1))
			continue
		}
		offset += int64(end)
		if len(b)-end-1 < maxStamp && err == nil {
			continue // its time stamp may be cut off
		}
		if second, ok := o.second(b[end+1:]); ok && second >= o.from && second < o.to {
			return offset + 1, second, offset+1 < before
		}
		offset++
	}
	return 0, 0, false
}

// lastLine is the last line that ends before an offset or there, and where it ends. If it is empty, none ends between
// there and the offset.
func (o *opened) lastLine(before int64) (line []byte, end int64, err error) {
	for _, size := range []int64{4 << 10, maxLine} { // mostly it is short
		tail := make([]byte, min(before, size))
		if _, err := o.data.ReadAt(tail, before-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
			return nil, 0, err
		}
		whole := bytes.LastIndexByte(tail, '\n') + 1
		end = before - int64(len(tail)-whole)
		began := bytes.LastIndexByte(tail[:max(whole-1, 0)], '\n') + 1
		line = tail[began:whole]
		if began > 0 || size > before {
			break
		}
	}
	return line, end, nil
}

// closed reports whether a line of all inbound traffic ends at the offset.
func (o *opened) closed(offset int64) (bool, error) {
	line, end, err := o.lastLine(offset)
	return end == offset && bytes.Contains(line, o.closing), err
}

// finished is where the last second ends that is there as a whole. That one is still being written, or that a power
// cut took a part of it, shows by its last line, which is not that of all inbound traffic. In a file of Sentinel's there
// need not be one: there a second is whole if its lines are and the index has it, or there is no index.
func (o *opened) finished() (int64, error) {
	line, end, err := o.lastLine(o.size)
	if err != nil {
		return 0, err
	}
	second, ok := o.second(line)
	if !ok || second < o.from || second >= o.to || bytes.Contains(line, o.closing) {
		return end, nil
	}
	began := end
	low, high := o.place(second)
	for lines := newLines(o.data, low, high, end); ; {
		line, err := lines.next()
		if got, ok := o.second(line); err != nil || ok && got == second {
			began = min(end, lines.began)
			break
		}
	}
	closed, err := o.closed(began)
	if err != nil {
		return 0, err
	}
	indexed := o.lastIndexed()
	index := o.idx != nil && (indexed > 0 || o.n == 0 && began == 0) // there is one that is this file's
	if !closed && end == o.size && (!index || second <= indexed) {
		return end, nil
	}
	return began, nil
}

// last is the last second of the file; 0 if there is none.
func (o *opened) last() (int64, error) {
	end, err := o.finished()
	if err != nil {
		return 0, err
	}
	line, _, err := o.lastLine(end)
	if err != nil {
		return 0, err
	}
	last := o.lastIndexed()
	if second, ok := o.second(line); ok && second < o.to {
		last = max(last, second)
	}
	return last, nil
}
