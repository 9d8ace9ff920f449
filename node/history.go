package node

import (
	"encoding/binary"
	"math"
	"slices"
)

// records keeps what is known of seconds: one after the other, each with its length and, where seconds were idle, the distance to
// the one before it. An idle second takes nothing. The oldest are dropped in time. To find a second is to go through those before it,
// from where the last search ended: so who reads on finds the next one at once, and the newest is always found so.
type records struct {
	buf     []byte
	from    int   // where the oldest record is in buf
	newest  int   // where the newest one is
	first   int64 // the oldest record's second
	last    int64 // the newest record's second; the least number if there never was one
	dropped int64 // the latest second whose record was dropped, or the least number
	sought  int64 // a second that has a record
	at      int   // where that is in buf; before from if it was dropped
}

func noRecords() records { return records{last: math.MinInt64, dropped: math.MinInt64} }

// add keeps the record of a second after all that are kept.
func (h *records) add(index int64, record []byte) {
	var head [2 * binary.MaxVarintLen64]byte
	if h.from == len(h.buf) {
		h.first, h.last = index, index
		h.sought, h.at = index, h.from
	}
	size := uint64(len(record)) << 1
	b := head[:0]
	if distance := uint64(index - h.last); distance == 1 {
		b = binary.AppendUvarint(b, size)
	} else {
		b = binary.AppendUvarint(b, size|1)
		b = binary.AppendUvarint(b, distance)
	}
	h.last = index
	if need := len(b) + len(record) + spare; len(h.buf)+need > cap(h.buf) {
		// Dropped records make room, if it is a little more than is needed: the more there is, the less often the others are
		// moved.
		kept := h.buf[h.from:]
		size := len(kept) + need
		size += size / 64
		to := h.buf[:0]
		if size > cap(h.buf) {
			to = slices.Grow([]byte(nil), size) // all of the allocator's size class
		}
		h.buf, h.from, h.at = append(to, kept...), 0, h.at-h.from
	}
	h.newest = len(h.buf)
	h.buf = append(append(h.buf, b...), record...)
}

// drop drops the records of all seconds before one, and returns the last of them, nil if there is none. It is valid until
// the next record is added.
func (h *records) drop(before int64) (last []byte) {
	for h.from < len(h.buf) && h.first < before {
		_, record, next := h.entry(h.from)
		last = record
		h.dropped = h.first
		h.from = next
		if next < len(h.buf) {
			distance, _, _ := h.entry(next)
			h.first += distance
		}
	}
	return last
}

// entry reads the entry at an offset of buf: the distance to the second before, the record, and the next offset.
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

// seek notes where the seconds from from on begin, for each.
func (h *records) seek(from int64) {
	index, at := h.begin(from)
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
	h.sought, h.at = index, at
}

// begin is a record at or before that of the second from, or the oldest, to search from.
func (h *records) begin(from int64) (index int64, at int) {
	switch {
	case h.last <= from && h.newest >= h.from:
		return h.last, h.newest
	case h.at >= h.from && h.sought <= from:
		return h.sought, h.at
	}
	return h.first, h.from
}

// before is the last record before that of a second, nil if there is none.
func (h *records) before(index int64) (int64, []byte) {
	h.seek(index - 1)
	if h.from == len(h.buf) || h.sought >= index {
		return 0, nil
	}
	_, record, _ := h.entry(h.at)
	return h.sought, record
}

// each calls f for the records of the seconds from from to before to, ascending, until it returns false.
func (h *records) each(from, to int64, f func(index int64, record []byte) bool) {
	index, begin := h.begin(from)
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
