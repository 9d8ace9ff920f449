package metriclog

import (
	"encoding/binary"
	"io"
	"sort"
)

// idxRecord is the size of an index record: the Unix time of a second and the offset of its first line. Records ascend. Some
// may be missing, and an index may be another file's: a record is valid only if the line at its offset matches.
const idxRecord = 16

// appendRecord appends the index record of a second whose first line is at offset.
func appendRecord(b []byte, second, offset int64) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(second))
	return binary.BigEndian.AppendUint64(b, uint64(offset))
}

func parseRecord(b []byte) (second, offset int64) {
	return int64(binary.BigEndian.Uint64(b)), int64(binary.BigEndian.Uint64(b[8:]))
}

// index is an open index of n records.
type index struct {
	io.ReaderAt
	n int
}

// record reads a record. One that cannot be read is 0, -1, which no line matches.
func (x index) record(i int) (second, offset int64) {
	var b [idxRecord]byte
	if _, err := x.ReadAt(b[:], int64(i)*idxRecord); err != nil {
		return 0, -1
	}
	return parseRecord(b[:])
}

// search returns the number of the first record of this second or a later one, n if there is none.
func (x index) search(second int64) int {
	return sort.Search(x.n, func(i int) bool {
		s, _ := x.record(i)
		return s >= second
	})
}
