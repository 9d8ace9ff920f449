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
	if o.idx, err = os.Open(path + idxSuffix); err == nil {
		info, err := o.idx.Stat()
		if err != nil {
			return o, err
		}
		o.index = index{o.idx, int(info.Size() / idxRecord)}
	} else if !errors.Is(err, os.ErrNotExist) {
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
	return o, nil
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

// agrees reports whether a line of this second begins at the offset, as a record of the index says.
func (o *opened) agrees(second, offset int64) bool {
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

// start is the offset of a line that has no line of the second from, or a later one, before it, and few others behind it.
func (o *opened) start(from int64) int64 {
	second, offset, ok := o.before(from)
	switch {
	case ok && o.agrees(second, offset):
		return offset
	case !ok && o.n > 0:
		if second, offset := o.record(0); offset == 0 && o.agrees(second, offset) {
			return 0
		}
	}
	return o.bisect(from)
}

// bisect is start without the index.
func (o *opened) bisect(from int64) int64 {
	const near = 64 << 10
	low, high := int64(0), o.size
	for high-low > near {
		middle := low + (high-low)/2
		offset, second, ok := o.line(middle, high)
		if ok && second < from {
			low = offset
		} else {
			high = middle
		}
	}
	return low
}

// line finds the first line that begins behind an offset and before another.
func (o *opened) line(offset, before int64) (at, second int64, ok bool) {
	buf := make([]byte, 4<<10)
	for offset < before {
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

// finished is where the last second ends that no process is writing any more: one that the index has, one that another
// follows, or one that the Writer has closed. Without an index that agrees, it is where the last line ends.
func (o *opened) finished() (int64, error) {
	const most = 64 << 10
	tail := make([]byte, min(o.size, most))
	if _, err := o.data.ReadAt(tail, o.size-int64(len(tail))); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	tail = tail[:bytes.LastIndexByte(tail, '\n')+1]
	if len(tail) == 0 {
		return o.size, nil // whatever that is, it is no line of ours
	}
	end := o.size - int64(min(o.size, most)) + int64(len(tail))
	line := tail[bytes.LastIndexByte(tail[:len(tail)-1], '\n')+1:]
	second, ok := o.second(line)
	indexed := o.lastIndexed()
	if !ok || o.idx == nil || bytes.Contains(line, o.closing) || second <= indexed || indexed == 0 && o.n > 0 {
		return end, nil
	}
	offset := o.start(second)
	for lines := newLines(o.data, offset, end); ; {
		line, err := lines.next()
		if err != nil {
			return end, nil //nolint:nilerr // it cannot be found again
		}
		if got, ok := o.second(line); ok && got == second {
			return lines.began, nil
		}
	}
}
