package node

import (
	"encoding/binary"
	"slices"
	"time"
)

// sealed is the record of a second that has ended, as a statistic keeps it. Beside it are its slides: the passes of each
// window of one second that ended at the end of one of its buckets. The last of them are the passes of the second itself.
// Slides of several statistics can be added up, which their peaks cannot.
type sealed struct {
	Counts
	began, inFlight int64         // calls in flight when the second began and ended
	most            int64         // in flight at once, at most; of several stripes, the sum of what each had
	sure            int64         // the same, of the stripe that had most
	spent           time.Duration // by all calls in the second
}

// packed is the position of a record in the store.
type packed struct {
	at   uint32
	size uint32
}

// append packs the slides but the last one, and the record, as varints. A histogram may follow.
func (r *sealed) append(b []byte, slides []int64) []byte {
	for _, v := range slides[:len(slides)-1] {
		b = binary.AppendUvarint(b, uint64(v))
	}
	for _, v := range [...]int64{
		r.Pass, r.Block, r.Complete, r.Exception, r.OccupiedPass,
		int64(r.RTSum), int64(r.RTMin), int64(r.RTMax), r.began, r.inFlight, r.most, r.sure, int64(r.spent),
	} {
		b = binary.AppendUvarint(b, uint64(v))
	}
	return b
}

// unpack reads a record with the given number of slides, adds the slides to sums if that is not nil, and returns what
// follows the record, the histogram.
func (r *sealed) unpack(b []byte, slides int64, sums []int64) []byte {
	for i := range slides - 1 {
		v, size := binary.Uvarint(b)
		if sums != nil {
			sums[i] = saturate(sums[i], int64(v))
		}
		b = b[size:]
	}
	for _, to := range [...]*int64{
		&r.Pass, &r.Block, &r.Complete, &r.Exception, &r.OccupiedPass,
		(*int64)(&r.RTSum), (*int64)(&r.RTMin), (*int64)(&r.RTMax), &r.began, &r.inFlight, &r.most, &r.sure, (*int64)(&r.spent),
	} {
		v, size := binary.Uvarint(b)
		*to, b = int64(v), b[size:]
	}
	if sums != nil {
		sums[slides-1] = saturate(sums[slides-1], r.Pass)
	}
	return b
}

// onlySlides reports whether a packed record has nothing else: its second was idle, and the one before it was not.
func onlySlides(b []byte, slides int64) bool {
	var rec sealed
	rec.unpack(b, slides, nil)
	return rec == sealed{}
}

// addSlides adds the slides of a packed record to sums.
func addSlides(b []byte, sums []int64) {
	for i := range sums {
		v, size := binary.Uvarint(b)
		sums[i], b = saturate(sums[i], int64(v)), b[size:]
	}
}

// peakOf reads the highest of a packed record's slides.
func peakOf(b []byte, slides int64) (peak int64) {
	for range slides {
		v, size := binary.Uvarint(b)
		peak, b = max(peak, int64(v)), b[size:]
	}
	return peak
}

// store keeps packed records one after the other. Records are dropped from the front, when room is needed.
type store struct {
	buf  []byte
	base uint32 // position of buf[0]; positions wrap around, and only differences count
}

// add keeps a record. Those before the position oldest are not needed any more.
func (s *store) add(record []byte, oldest uint32) packed {
	if len(s.buf)+len(record) > cap(s.buf) {
		s.makeRoom(len(record), int(oldest-s.base))
	}
	p := packed{at: s.base + uint32(len(s.buf)), size: uint32(len(record))}
	s.buf = append(s.buf, record...)
	return p
}

// makeRoom drops the first dead bytes, and takes more memory if that does not make an eighth of room: the more there
// is, the less often the records are moved.
func (s *store) makeRoom(need, dead int) {
	live := s.buf[dead:]
	size := len(live) + need
	size += size / 8
	to := s.buf[:0]
	if size > cap(s.buf) {
		to = slices.Grow([]byte(nil), size) // all of the allocator's size class
	}
	s.buf = append(to, live...)
	s.base += uint32(dead)
}

func (s *store) get(p packed) []byte {
	from := p.at - s.base
	return s.buf[from : from+p.size]
}

func secondAt(index int64) time.Duration { return time.Duration(index) * time.Second }

// secondOf is the index of the second that a line time is in; it is negative before 1970.
func secondOf(at time.Duration) int64 {
	index := int64(at / time.Second)
	if at < secondAt(index) {
		index--
	}
	return index
}
