package node

import (
	"encoding/binary"
	"math"
	"slices"
	"time"
)

// records stores the packed records of seconds, or the packed histograms of seconds, in ascending order. The comments
// below call both of them records. An entry consists of the length of the record, the distance in seconds from the
// previous entry, and the record. If the distance is 1, it is left out. For example, this store contains the records of
// the seconds 7, 10 and 11:
//
//	buf   | dropped | length | record of 7 | length, distance 3 | record of 10 | length | record of 11 | spare
//	                  ^ oldest               ^ found                             ^ newest
//
// The lowest bit of the length is set if a distance follows. Idle seconds take no space. Old entries are dropped from
// the front. A lookup scans forward from one of three entries: the newest entry, the entry that the previous lookup
// found, or the oldest entry. Sequential reads and reads of the newest record are therefore fast. The spare bytes after
// the newest record contain no data, but a bitReader may load them; see the constant spare.
type records struct {
	buf         []byte
	oldest      int   // offset of the oldest entry in buf
	newest      int   // offset of the newest entry
	firstSecond int64 // second of the oldest entry
	lastSecond  int64 // second of the newest entry; math.MinInt64 before the first entry
	dropped     int64 // second of the last dropped record; math.MinInt64 before the first drop
	foundSecond int64 // second of the entry that the previous lookup found
	found       int   // offset of the entry of foundSecond; less than oldest once this entry is dropped
}

// noRecords returns an empty store.
func noRecords() records { return records{lastSecond: math.MinInt64, dropped: math.MinInt64} }

// add appends the record of the second with this index. All stored records must be of earlier seconds.
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

// reserve makes space for n more bytes at the end of buf. If the array of buf has too little space at its end, reserve
// moves the kept entries to the start of the array, over the dropped entries. In two cases it moves them to a new array
// instead: if the kept entries and n bytes do not fit into the old array, or if they take less than half of it and the
// old array is larger than minShrink.
func (h *records) reserve(n int) {
	if len(h.buf)+n <= cap(h.buf) {
		return
	}
	kept := h.buf[h.oldest:]
	dst := h.buf[:0]
	if size := len(kept) + n; size > cap(h.buf) || size < cap(h.buf)/2 && cap(h.buf) > minShrink {
		// With the extra 1/256 of the size, reserve moves the entries less often. The new array is usually even larger,
		// because the allocator rounds sizes up.
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

// release frees the memory of the store if all its records were dropped. Only a statistic that retires releases its
// stores. Any other statistic needs the memory for its next record.
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

// seek finds the last entry whose second is not later than the second target. If the seconds of all entries are later,
// seek finds the oldest entry. It stores the second of the found entry in foundSecond, and the offset of the entry in
// found. It returns false if the store is empty.
//
// An entry does not contain the length of the entry before it, so seek can only scan forward. It starts at the first of
// these entries whose second is not later than target:
//
//  1. the newest entry
//  2. the entry that the previous lookup found
//  3. the oldest entry (seek starts there even if its second is later)
func (h *records) seek(target int64) bool {
	if h.oldest == len(h.buf) {
		return false // seek must not write to the store of emptyHistory, which is shared
	}
	index, at := h.foundSecond, h.found
	switch {
	case h.lastSecond <= target:
		index, at = h.lastSecond, h.newest
	case at < h.oldest || index > target:
		index, at = h.firstSecond, h.oldest
	}
	for next := at; next < len(h.buf); {
		distance, _, after := h.entry(next)
		if next > at {
			distance += index
			if distance > target {
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

// before finds the last record before the second limit. It returns the second of this record and the record itself, or
// 0 and nil if there is no such record.
func (h *records) before(limit int64) (second int64, record []byte) {
	if !h.seek(limit-1) || h.foundSecond >= limit {
		return 0, nil
	}
	_, record, _ = h.entry(h.found)
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
