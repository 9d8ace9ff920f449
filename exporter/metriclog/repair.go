package metriclog

import "bytes"

// repair cuts both open files back to the last second that has a record in the index and whose lines are all there.
// Lines are written before the record, so a second without one may lack some. After a power cut the disk may have kept
// one and not the other, and any part of it.
//
// It reports false, and changes nothing, if no second of the index is in the file and yet there are lines of several:
// then the index is not this file's.
func (f *files) repair() (bool, error) {
	size, idxSize := f.size, f.idxSize
	f.idxSize -= f.idxSize % idxRecord
	for f.idxSize > 0 {
		var record [idxRecord]byte
		if _, err := f.idx.ReadAt(record[:], f.idxSize-idxRecord); err != nil {
			return false, err
		}
		second, offset := parseRecord(record[:])
		if offset >= 0 && offset < f.size {
			whole, err := f.whole(second, offset)
			if err != nil {
				return false, err
			}
			if whole > 0 {
				f.size = offset + int64(whole)
				break
			}
			f.size = offset
		}
		f.idxSize -= idxRecord
	}
	if f.idxSize == 0 && size > 0 {
		rows := make([]byte, size)
		if _, err := f.data.ReadAt(rows, 0); err != nil {
			return false, err
		}
		if f.several(rows) {
			f.size, f.idxSize = size, idxSize
			return false, nil
		}
		f.size = 0
	}
	if f.size == size && f.idxSize == idxSize {
		return true, nil
	}
	return true, f.restore()
}

// whole is how many bytes the second at offset has, 0 if it is not there as a whole. That lines are missing at its end
// shows by the last one, which is not that of all inbound traffic. In a file of Sentinel's there need not be one, nor at
// the end of the second before.
func (f *files) whole(second, offset int64) (int, error) {
	rows := make([]byte, f.size-offset)
	if _, err := f.data.ReadAt(rows, offset); err != nil {
		return 0, err
	}
	n, closed := f.format.whole(rows, second)
	if closed || n == 0 {
		return n, nil
	}
	before := make([]byte, min(offset, 4<<10)) // a line of all inbound traffic is shorter
	if _, err := f.data.ReadAt(before, offset-int64(len(before))); err != nil {
		return 0, err
	}
	before = bytes.TrimSuffix(before, []byte("\n"))
	if offset == 0 || bytes.Contains(before[bytes.LastIndexByte(before, '\n')+1:], f.closing) {
		return 0, nil
	}
	return n, nil
}

// several reports whether there are lines of more than one second.
func (f *format) several(rows []byte) bool {
	first := int64(0)
	for len(rows) > 0 {
		line, rest, _ := bytes.Cut(rows, []byte("\n"))
		second, ok := f.second(line)
		if ok && first != 0 && second != first {
			return true
		}
		if ok {
			first = second
		}
		rows = rest
	}
	return false
}
