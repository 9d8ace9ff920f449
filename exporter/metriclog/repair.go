package metriclog

import (
	"bytes"
	"encoding/binary"
	"strconv"
)

const (
	idxSuffix = ".idx"
	idxRecord = 16
)

// appendRecord appends the index record of a second whose first line is at offset.
func appendRecord(b []byte, second, offset int64) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(second))
	return binary.BigEndian.AppendUint64(b, uint64(offset))
}

func parseRecord(b []byte) (second, offset int64) {
	return int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint64(b[8:]))
}

// repair cuts both open files back to the last second that has a record in the index and whose lines are all whole.
// Lines are written before the record, so a second without one may lack some. After a power cut the disk may have
// kept one and not the other, and any part of it: of what is found then, all but a cut between two lines shows.
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
			rows := make([]byte, f.size-offset)
			if _, err := f.data.ReadAt(rows, offset); err != nil {
				return false, err
			}
			if whole := wholeSecond(rows, second); whole > 0 {
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
		stamp, _, _ := bytes.Cut(rows, []byte("|"))
		ms, err := strconv.ParseInt(string(stamp), 10, 64)
		if whole := wholeSecond(rows, ms/1000); err == nil && bytes.IndexByte(rows[whole:], '\n') >= 0 {
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

// wholeSecond is how many bytes the lines of a second have at the start of rows, 0 if one of them is torn or is no
// line. Lines of a later second may follow, and the beginning of a time stamp.
func wholeSecond(rows []byte, second int64) int {
	whole := 0
	for rest := rows; len(rest) > 0; rest = rows[whole:] {
		stamp, _, complete := bytes.Cut(rest, []byte("|"))
		ms, err := strconv.ParseInt(string(stamp), 10, 64)
		switch {
		case err != nil:
			return 0
		case !complete || ms/1000 != second:
			return whole
		}
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			return 0
		}
		whole += end + 1
	}
	return whole
}
