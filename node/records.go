package node

import (
	"encoding/binary"
	"math"
	"slices"
	"time"
)

// records stores the packed records of seconds in ascending order. An entry consists of the length of the record, the
// distance in seconds from the previous entry if the distance is not 1, and the record. For example, this store
// contains the records of the seconds 7, 10 and 11:
//
//	buf   | dropped | length | record of 7 | length, distance 3 | record of 10 | length | record of 11 | spare
//	                  ^ oldest               ^ found                             ^ newest
//
// The lowest bit of the length is set if a distance follows. Idle seconds take no space. Old entries are dropped from
// the front. A lookup scans forward from one of three entries: the newest one, the one that the previous lookup found,
// or the oldest one. Sequential reads and reads of the newest record are therefore fast. The spare bytes at the end are
// unused, see the constant spare.
type records struct {
	buf         []byte
	oldest      int   // offset of the oldest entry in buf
	newest      int   // offset of the newest entry
	firstSecond int64 // second of the oldest entry
	lastSecond  int64 // second of the newest entry; math.MinInt64 before the first entry
	dropped     int64 // second of the last dropped record, or math.MinInt64
	foundSecond int64 // second of the entry that the previous lookup found
	found       int   // offset of the entry of foundSecond; less than oldest once this entry is dropped
}

// noRecords returns an empty store.
func noRecords() records { return records{lastSecond: math.MinInt64, dropped: math.MinInt64} }

// add appends the record of the second with this index. The second must be after all stored seconds.
func (h *records) add(index int64, record []byte) {
	var head [2 * binary.MaxVarintLen64]byte
	if h.oldest == len(h.buf) {
		h.firstSecond, h.lastSecond = index, index
		h.foundSecond, h.found = index, h.oldest
	}
	size := uint64(len(record)) << 1
	b := head[:0]
	if distance := uint64(index - h.lastSecond); distance == 1 {
		b = binary.AppendUvarint(b, size)
	} else {
		b = binary.AppendUvarint(b, size|1)
		b = binary.AppendUvarint(b, distance)
	}
	h.lastSecond = index
	h.reserve(len(b) + len(record) + spare)
	h.newest = len(h.buf)
	h.buf = append(append(h.buf, b...), record...)
}

// reserve makes space for n more bytes at the end of buf. If the array of buf is full, reserve moves the kept entries
// to the start of the array, over the dropped ones. It allocates a new array in two cases: the entries do not fit, or
// they would take less than half of a large array.
func (h *records) reserve(n int) {
	if len(h.buf)+n <= cap(h.buf) {
		return
	}
	kept := h.buf[h.oldest:]
	dst := h.buf[:0]
	if size := len(kept) + n; size > cap(h.buf) || size < cap(h.buf)/2 && cap(h.buf) > minShrink {
		// With the extra 1/256 of the size, reserve moves the entries less often. Grow usually returns an even larger
		// slice, because the allocator rounds sizes up.
		dst = slices.Grow([]byte(nil), size+size/256)
	}
	h.buf, h.oldest, h.found = append(dst, kept...), 0, h.found-h.oldest
}

// minShrink is a size in bytes. reserve never replaces an array of this size or less by a smaller one.
const minShrink = 1024

// drop removes the records of all seconds before the second with this index. It returns the last record that it
// removed, or nil. The returned slice is valid until the next call of add.
func (h *records) drop(index int64) (last []byte) {
	for h.oldest < len(h.buf) && h.firstSecond < index {
		_, record, next := h.entry(h.oldest)
		last = record
		h.dropped = h.firstSecond
		h.oldest = next
		if next < len(h.buf) {
			distance, _, _ := h.entry(next)
			h.firstSecond += distance
		}
	}
	return last
}

// release frees the memory of the store if all its records were dropped. Only the stores of retired statistics are
// released, because a retired statistic adds no records.
func (h *records) release() {
	if h.oldest == len(h.buf) {
		h.buf, h.oldest, h.newest, h.found = nil, 0, 0, 0
	}
}

// entry reads the entry that begins at the given offset in buf. It returns the distance in seconds from the previous
// entry, the record, and the offset of the next entry.
func (h *records) entry(offset int) (distance int64, record []byte, next int) {
	head := uint64(h.buf[offset])
	if offset++; head >= 1<<7 {
		v, n := binary.Uvarint(h.buf[offset-1:])
		head, offset = v, offset-1+n
	}
	distance = 1
	if head&1 != 0 {
		d, n := binary.Uvarint(h.buf[offset:])
		distance, offset = int64(d), offset+n
	}
	next = offset + int(head>>1)
	return distance, h.buf[offset:next], next
}

// seek finds the last entry that is not after the second with the index from. If all entries are after that second,
// seek finds the oldest entry. It stores the second of this entry in foundSecond, and its offset in found. It returns
// false if the store is empty.
//
// An entry does not contain the length of the entry before it, so seek can only scan forward. It starts at the newest
// entry, the entry that the previous lookup found, or the oldest entry. Of these three, it chooses the latest entry
// that is not after the second with the index from.
func (h *records) seek(from int64) bool {
	if h.oldest == len(h.buf) {
		return false // seek must not write to the store of emptyHistory, which is shared
	}
	index, at := h.foundSecond, h.found
	switch {
	case h.lastSecond <= from:
		index, at = h.lastSecond, h.newest
	case at < h.oldest || index > from:
		index, at = h.firstSecond, h.oldest
	}
	for next := at; next < len(h.buf); {
		distance, _, after := h.entry(next)
		if next > at {
			distance += index
			if distance > from {
				break
			}
			index, at = distance, next
		}
		next = after
	}
	h.foundSecond, h.found = index, at
	return true
}

// each calls f for the records of the seconds [from, to), in ascending order, until f returns false. It is not an
// iterator, because an iterator costs an allocation if the compiler does not inline it.
func (h *records) each(from, to int64, f func(index int64, record []byte) bool) {
	if !h.seek(from) {
		return
	}
	index, begin := h.foundSecond, h.found
	for at := begin; at < len(h.buf); {
		distance, record, next := h.entry(at)
		if at > begin {
			index += distance
		}
		if index >= to || index >= from && !f(index, record) {
			return
		}
		at = next
	}
}

// before returns the second and the record of the last entry before the second with this index. If there is no such
// entry, it returns 0 and nil.
func (h *records) before(index int64) (int64, []byte) {
	if !h.seek(index-1) || h.foundSecond >= index {
		return 0, nil
	}
	_, record, _ := h.entry(h.found)
	return h.foundSecond, record
}

// secondStart returns the start of the second with this index, in line time.
func secondStart(index int64) time.Duration { return time.Duration(index) * time.Second }

// secondIndex returns the index of the second that contains the given line time. The index is negative before 1970.
func secondIndex(at time.Duration) int64 {
	index := int64(at / time.Second)
	if at < secondStart(index) {
		index--
	}
	return index
}
