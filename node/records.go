package node

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"time"
)

// records keeps what is known of seconds: one after the other, each with its length and, where seconds were idle, the distance to
// the one before it. An idle second takes nothing. The oldest are dropped in time. To find a second is to go through those before it,
// from where the last search ended: so who reads on finds the next one at once, and the newest is always found so.
type records struct {
	buf     []byte
	oldest    int   // where the oldest record is in buf
	newest  int   // where the newest one is
	firstSecond   int64 // the oldest record's second
	lastSecond    int64 // the newest record's second; the least number if there never was one
	dropped int64 // the latest second whose record was dropped, or the least number
	foundSecond  int64 // a second that has a record
	found      int   // where that is in buf; before from if it was dropped
}

func noRecords() records { return records{lastSecond: math.MinInt64, dropped: math.MinInt64} }

// add keeps the record of a second after all that are kept.
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
	if need := len(b) + len(record) + spare; len(h.buf)+need > cap(h.buf) {
		// The space of dropped records is used again, if it is a little more than is needed: the more there is, the less often the others are
		// moved.
		kept := h.buf[h.oldest:]
		size := len(kept) + need
		size += size / 64
		to := h.buf[:0]
		if size > cap(h.buf) {
			to = slices.Grow([]byte(nil), size) // all of the allocator's size class
		}
		h.buf, h.oldest, h.found = append(to, kept...), 0, h.found-h.oldest
	}
	h.newest = len(h.buf)
	h.buf = append(append(h.buf, b...), record...)
}

// drop drops the records of all seconds before one, and returns the last of them, nil if there is none. It is valid until
// the next record is added.
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

// seek notes where the last record at or before that of the second from is, or else the oldest, and reports whether there is any. It
// goes forward only, because a record has the length of its own and not that of the one before it: from the newest, from where the
// last search ended, or from the oldest.
func (h *records) seek(from int64) bool {
	if h.oldest == len(h.buf) {
		return false // and nothing is written, see noRings
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

// each calls f for the records of the seconds from from to before to, ascending, until it returns false. It is no iterator, because
// one that does not fit into its caller costs an allocation.
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

// before is the last record before that of a second, nil if there is none.
func (h *records) before(index int64) (int64, []byte) {
	if !h.seek(index-1) || h.foundSecond >= index {
		return 0, nil
	}
	_, record, _ := h.entry(h.found)
	return h.foundSecond, record
}

// sealed is the record of a second that has ended, as a statistic keeps it. Beside it are its slides: the passes of each
// window of one second that ended at the end of one of its buckets. The last of them are the passes of the second itself.
// Slides of several statistics can be added up, which their peaks cannot.
type record struct {
	Counts
	inFlightAtStart, inFlight int64         // calls in flight when the second began and ended
	maxInFlight            int64         // in flight at once: the most, with several stripes at least that, see surely
	inFlightTime           time.Duration // by all calls in the second
	lateEntry            time.Duration // at most so much of it was before the second
}

// append packs the slides but the last one, and the record.
//
// What was said before tells much of what follows: numbers are packed as how far they are from what they mostly are, and
// those that are mostly 0 only if they are not. The response times and what was spent take all their bits, which nothing
// tells; they are most of it.
func (r *record) append(b []byte, slides []int64) []byte {
	w := bitWriter{b: b}
	w = w.code(uint64(r.Pass), kPass)
	for _, v := range slides[:len(slides)-1] {
		w = w.code(zigzag(r.Pass-v), kSlide)
	}
	rare := [...]uint64{
		uint64(r.Exception), uint64(r.Block), uint64(r.lateEntry), uint64(r.OccupiedPass), zigzag(r.inFlight - r.expectedInFlight()),
	}
	var which uint64
	for i, v := range rare {
		if v != 0 {
			which |= 1 << i
		}
	}
	spans := [...]uint64{
		uint64(r.RTMin), uint64(r.RTMax - r.RTMin), uint64(r.RTSum) - r.minRTSum(), zigzag(int64(r.inFlightTime - r.RTSum)),
	}
	flight := [...]uint64{zigzag(r.Complete - r.Pass), uint64(r.inFlightAtStart), uint64(r.maxInFlight - max(r.inFlightAtStart, r.inFlight)), which}
	for _, v := range flight {
		w = w.code(v, kMost)
	}
	var n [4]int
	for i, v := range spans {
		n[i] = bits.Len64(v)
		w = w.code(zigzag(int64(n[i]-r.expectedBits(i, &n))), kMost)
	}
	for _, v := range rare {
		if v != 0 {
			w = w.code(v-1, kMost)
		}
	}
	for i, v := range spans {
		w = w.putRemainder(v, n[i])
	}
	return w.end()
}

// unpack reads a record with the given number of slides, and adds the slides to sums if that is not nil.
func (r *record) unpack(b []byte, slides int64, sums []int64) {
	in := readBits(b)
	r.Pass = int64(in.code(kPass))
	for i := range slides - 1 {
		v := r.Pass - unzigzag(in.code(kSlide))
		if sums != nil {
			sums[i] = saturate(sums[i], v)
		}
	}
	if sums != nil {
		sums[slides-1] = saturate(sums[slides-1], r.Pass)
	}
	all := in.readEight()
	flight, lengths := all[:4], all[4:]
	r.Complete = r.Pass + unzigzag(flight[0])
	r.inFlightAtStart = int64(flight[1])
	r.inFlight = r.expectedInFlight()
	var rare [5]uint64
	for which := flight[3]; which != 0; which &= which - 1 {
		rare[bits.TrailingZeros64(which)] = in.code(kMost) + 1
	}
	r.Exception, r.Block, r.OccupiedPass = int64(rare[0]), int64(rare[1]), int64(rare[3])
	r.inFlight += unzigzag(rare[4])
	r.maxInFlight = max(r.inFlightAtStart, r.inFlight) + int64(flight[2])
	r.lateEntry = time.Duration(rare[2])
	var n [4]int
	var spans [4]uint64
	for i := range spans {
		n[i] = r.expectedBits(i, &n) + int(unzigzag(lengths[i]))
		spans[i] = in.readRemainder(n[i])
	}
	r.RTMin = time.Duration(spans[0])
	r.RTMax = r.RTMin + time.Duration(spans[1])
	r.RTSum = time.Duration(r.minRTSum() + spans[2])
	r.inFlightTime = r.RTSum + time.Duration(unzigzag(spans[3]))
}

// About how many bits of some numbers are at random: of passes, of the difference of a slide, of others.
const (
	kPass  = 5
	kSlide = 3
	kMost  = 1
)

// left is what is in flight in the end if each pass and each completion was of a call of its own.
func (r *record) expectedInFlight() int64 { return r.inFlightAtStart + r.Pass - r.Complete }

// least is the sum of response times if all were the shortest.
func (r *record) minRTSum() uint64 { return uint64(times(int64(r.RTMin), r.Complete)) }

// expect is about how many bits one of the times of a record has, those before it having n: the shortest response time is
// milliseconds, the longest is some times that, and what was spent differs from their sum by what calls spend in another second.
func (r *record) expectedBits(i int, n *[4]int) int {
	switch {
	case i == 3 && r.Complete > 0:
		return max(n[0], n[1])
	case i == 3 && (r.inFlightAtStart > 0 || r.Pass > 0):
		return bits.Len64(uint64(time.Second))
	case i == 0 && r.Complete > 0:
		return 23
	case i == 1 && r.Complete > 1:
		return n[0] + 4
	case i == 2 && r.Complete > 1:
		return n[1] + bits.Len64(uint64(r.Complete)) - 2
	}
	return 0
}

// onlySlides reports whether a packed record has nothing else: its second was idle, and the one before it was not.
func onlySlides(b []byte, slides int64) bool {
	in := readBits(b)
	if in.code(kPass) > 0 {
		return false
	}
	var rec record
	rec.unpack(b, slides, nil)
	return rec == record{}
}

func secondStart(index int64) time.Duration { return time.Duration(index) * time.Second }

// secondOf is the index of the second that a line time is in; it is negative before 1970.
func secondIndex(at time.Duration) int64 {
	index := int64(at / time.Second)
	if at < secondStart(index) {
		index--
	}
	return index
}
