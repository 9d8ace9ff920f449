package node

import (
	"math/bits"
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

// append packs the slides but the last one, and the record. A histogram may follow, from the next byte on.
//
// What was said before tells much of what follows: numbers are packed as how far they are from what they mostly are, and
// those that are mostly 0 only if they are not. The response times and what was spent take all their bits, which nothing
// tells; they are most of it.
func (r *sealed) append(b []byte, slides []int64) []byte {
	w := bitWriter{b: b}
	w.code(uint64(r.Pass), kPass)
	for _, v := range slides[:len(slides)-1] {
		w.code(fold(r.Pass-v), kSlide)
	}
	rare := [...]uint64{
		uint64(r.Exception), uint64(r.Block), uint64(r.most - r.sure), uint64(r.OccupiedPass), fold(r.inFlight - r.left()),
	}
	var which uint64
	for i, v := range rare {
		if v != 0 {
			which |= 1 << i
		}
	}
	for _, v := range [...]uint64{
		fold(r.Complete - r.Pass), uint64(r.began), uint64(r.most - max(r.began, r.inFlight)), which,
	} {
		w.code(v, kFlight)
	}
	for _, v := range rare {
		if v != 0 {
			w.code(v-1, kRare)
		}
	}
	if r.Complete > 0 {
		w.long(uint64(r.RTMin), aboutRT)
	}
	if r.Complete > 1 {
		w.long(uint64(r.RTMax-r.RTMin), r.aboutMax())
		w.long(uint64(r.RTSum)-r.leastSum(), r.aboutSum())
	}
	w.long(fold(int64(r.spent-r.RTSum)), r.aboutSpent())
	return w.end()
}

// unpack reads a record with the given number of slides, adds the slides to sums if that is not nil, and returns what
// follows the record, the histogram.
func (r *sealed) unpack(b []byte, slides int64, sums []int64) []byte {
	in := readBits(b)
	r.Pass = int64(in.code(kPass))
	for i := range slides - 1 {
		v := r.Pass - unfold(in.code(kSlide))
		if sums != nil {
			sums[i] = saturate(sums[i], v)
		}
	}
	if sums != nil {
		sums[slides-1] = saturate(sums[slides-1], r.Pass)
	}
	var some [4]uint64
	in.codes(some[:], kFlight)
	r.Complete, r.began = r.Pass+unfold(some[0]), int64(some[1])
	r.inFlight = r.left()
	var rare [5]uint64
	for which := some[3]; which != 0; which &= which - 1 {
		rare[bits.TrailingZeros64(which)] = in.code(kRare) + 1
	}
	r.Exception, r.Block, r.OccupiedPass = int64(rare[0]), int64(rare[1]), int64(rare[3])
	r.inFlight += unfold(rare[4])
	r.most = max(r.began, r.inFlight) + int64(some[2])
	r.sure = r.most - int64(rare[2])
	if r.Complete > 0 {
		r.RTMin = time.Duration(in.long(aboutRT))
		r.RTMax, r.RTSum = r.RTMin, r.RTMin
	}
	if r.Complete > 1 {
		r.RTMax += time.Duration(in.long(r.aboutMax()))
		r.RTSum = time.Duration(r.leastSum() + in.long(r.aboutSum()))
	}
	r.spent = r.RTSum + time.Duration(unfold(in.long(r.aboutSpent())))
	return b[in.bytes():]
}

// left is what is in flight in the end if each pass and each completion was of a call of its own.
func (r *sealed) left() int64 { return r.began + r.Pass - r.Complete }

// leastSum is the sum of response times if all were the shortest.
func (r *sealed) leastSum() uint64 { return uint64(times(int64(r.RTMin), r.Complete)) }

// How many bits some numbers have, more or less: response times are milliseconds, the longest is some times the shortest,
// and calls that are in flight when the second begins or ends make the difference between response times and what was spent.
const (
	kPass   = 5
	kSlide  = 3
	kFlight = 1
	kRare   = 1
	aboutRT = 23
)

func (r *sealed) aboutMax() int { return bits.Len64(uint64(r.RTMin)) + 3 }

func (r *sealed) aboutSum() int {
	return bits.Len64(uint64(r.RTMax-r.RTMin)) + bits.Len64(uint64(r.Complete)) - 2
}

func (r *sealed) aboutSpent() int {
	if r.Complete == 0 {
		return 30 // a call, a second
	}
	return bits.Len64(uint64(r.RTMax)) + 1
}

// onlySlides reports whether a packed record has nothing else: its second was idle, and the one before it was not.
func onlySlides(b []byte, slides int64) bool {
	var rec sealed
	rec.unpack(b, slides, nil)
	return rec == sealed{}
}

// addSlides adds the slides of a packed record to sums.
func addSlides(b []byte, sums []int64) {
	var rec sealed
	rec.unpack(b, int64(len(sums)), sums)
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
