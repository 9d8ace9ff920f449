package node

import (
	"encoding/binary"
	"math"
	"slices"
	"time"
)

// records stores the packed records of seconds in ascending order. An entry consists of the record's length, its
// distance from the previous entry if that is not 1, and the record:
//
//	buf   | dropped | length | record of 7 | length, distance 3 | record of 10 | length | record of 11 | spare
//	                  ^ oldest               ^ found                             ^ newest
//
// The lowest bit of the length is set if a distance follows. Idle seconds take no space. Old entries are dropped from
// the front. A lookup scans forward from the previous lookup, the newest entry or the oldest one. Sequential reads and
// reads of the newest record are therefore fast.
type records struct {
	buf         []byte
	oldest      int   // offset of the oldest entry in buf
	newest      int   // offset of the newest entry
	firstSecond int64 // second of the oldest entry
	lastSecond  int64 // second of the newest entry; math.MinInt64 if there never was one
	dropped     int64 // latest second whose record was dropped, or math.MinInt64
	foundSecond int64 // second of the entry where the previous lookup ended
	found       int   // offset of the entry of foundSecond; less than oldest once the entry is dropped
}

// noRecords returns an empty store.
func noRecords() records { return records{lastSecond: math.MinInt64, dropped: math.MinInt64} }

// add appends the record of a second after all stored seconds.
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

// reserve makes space for need more bytes. If the array has no space at its end, reserve moves the kept entries over
// the dropped ones. If they then do not fit into the array, or would take less than half of a large array, reserve
// moves them to a new array instead.
func (h *records) reserve(need int) {
	if len(h.buf)+need <= cap(h.buf) {
		return
	}
	kept := h.buf[h.oldest:]
	to := h.buf[:0]
	if size := len(kept) + need; size > cap(h.buf) || size < cap(h.buf)/2 && cap(h.buf) > minShrink {
		// With more free space, the entries are moved less often. Grow usually returns more, because it gets the
		// whole size class of the allocator.
		to = slices.Grow([]byte(nil), size+size/256)
	}
	h.buf, h.oldest, h.found = append(to, kept...), 0, h.found-h.oldest
}

// minShrink is the size in bytes of the largest array that a store keeps however few entries it has.
const minShrink = 1024

// drop removes the records of all seconds before the given one. It returns the last record that it removed, or nil. The
// slice is valid until the next call of add.
func (h *records) drop(before int64) (last []byte) {
	for h.oldest < len(h.buf) && h.firstSecond < before {
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

// release frees the memory of the store if all its records were dropped. It is for a retired statistic, whose store
// gets no further records.
func (h *records) release() {
	if h.oldest == len(h.buf) {
		h.buf, h.oldest, h.newest, h.found = nil, 0, 0, 0
	}
}

// entry reads the entry at an offset of buf: the distance from the previous second, the record, and the next offset.
func (h *records) entry(at int) (distance int64, record []byte, next int) {
	head := uint64(h.buf[at])
	if at++; head >= 1<<7 {
		v, n := binary.Uvarint(h.buf[at-1:])
		head, at = v, at-1+n
	}
	distance = 1
	if head&1 != 0 {
		d, n := binary.Uvarint(h.buf[at:])
		distance, at = int64(d), at+n
	}
	next = at + int(head>>1)
	return distance, h.buf[at:next], next
}

// seek finds the last record that is not after the second with the index from, or else the oldest record. It returns
// false if there are no records. Entries have only their own length, not the length of the entry before, so seek only
// scans forward: from the newest entry, from the entry of the previous lookup, or from the oldest one.
func (h *records) seek(from int64) bool {
	if h.oldest == len(h.buf) {
		return false // without a write: emptyHistory is shared
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

// each calls f for the records of the seconds [from, to), ascending, until f returns false. It is not an iterator,
// because an iterator costs an allocation wherever it is not inlined.
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

// before returns the last record before a second, or nil.
func (h *records) before(index int64) (int64, []byte) {
	if !h.seek(index-1) || h.foundSecond >= index {
		return 0, nil
	}
	_, record, _ := h.entry(h.found)
	return h.foundSecond, record
}

// secondStart returns the start of a second in line time.
func secondStart(index int64) time.Duration { return time.Duration(index) * time.Second }

// secondIndex returns the index of the second that contains a line time, negative before 1970.
func secondIndex(at time.Duration) int64 {
	index := int64(at / time.Second)
	if at < secondStart(index) {
		index--
	}
	return index
}
