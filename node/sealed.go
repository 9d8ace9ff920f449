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
	most            int64         // in flight at once: the most, with several stripes at least that, see surely
	spent           time.Duration // by all calls in the second
	late            time.Duration // at most so much of it was before the second
}

// append packs the slides but the last one, and the record. A histogram may follow, from the next byte on.
//
// What was said before tells much of what follows: numbers are packed as how far they are from what they mostly are, and
// those that are mostly 0 only if they are not. The response times and what was spent take all their bits, which nothing
// tells; they are most of it.
func (r *sealed) append(b []byte, slides []int64) []byte {
	w := bitWriter{b: b}
	w = w.code(uint64(r.Pass), kPass)
	for _, v := range slides[:len(slides)-1] {
		w = w.code(fold(r.Pass-v), kSlide)
	}
	rare := [...]uint64{
		uint64(r.Exception), uint64(r.Block), uint64(r.late), uint64(r.OccupiedPass), fold(r.inFlight - r.left()),
	}
	var which uint64
	for i, v := range rare {
		if v != 0 {
			which |= 1 << i
		}
	}
	spans := [...]uint64{
		uint64(r.RTMin), uint64(r.RTMax - r.RTMin), uint64(r.RTSum) - r.least(), fold(int64(r.spent - r.RTSum)),
	}
	flight := [...]uint64{fold(r.Complete - r.Pass), uint64(r.began), uint64(r.most - max(r.began, r.inFlight)), which}
	for _, v := range flight {
		w = w.code(v, kMost)
	}
	var n [4]int
	for i, v := range spans {
		n[i] = bits.Len64(v)
		w = w.code(fold(int64(n[i]-r.expect(i, &n))), kMost)
	}
	for _, v := range rare {
		if v != 0 {
			w = w.code(v-1, kMost)
		}
	}
	for i, v := range spans {
		w = w.putRest(v, n[i])
	}
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
	all := in.eight(kMost)
	flight, lengths := all[:4], all[4:]
	r.Complete = r.Pass + unfold(flight[0])
	r.began = int64(flight[1])
	r.inFlight = r.left()
	var rare [5]uint64
	for which := flight[3]; which != 0; which &= which - 1 {
		rare[bits.TrailingZeros64(which)] = in.code(kMost) + 1
	}
	r.Exception, r.Block, r.OccupiedPass = int64(rare[0]), int64(rare[1]), int64(rare[3])
	r.inFlight += unfold(rare[4])
	r.most = max(r.began, r.inFlight) + int64(flight[2])
	r.late = time.Duration(rare[2])
	var n [4]int
	var spans [4]uint64
	for i := range spans {
		n[i] = r.expect(i, &n) + int(unfold(lengths[i]))
		spans[i] = in.takeRest(n[i])
	}
	r.RTMin = time.Duration(spans[0])
	r.RTMax = r.RTMin + time.Duration(spans[1])
	r.RTSum = time.Duration(r.least() + spans[2])
	r.spent = r.RTSum + time.Duration(unfold(spans[3]))
	return b[in.bytes():]
}

// About how many bits of some numbers are at random: of passes, of the difference of a slide, of others.
const (
	kPass  = 5
	kSlide = 3
	kMost  = 1
)

// left is what is in flight in the end if each pass and each completion was of a call of its own.
func (r *sealed) left() int64 { return r.began + r.Pass - r.Complete }

// least is the sum of response times if all were the shortest.
func (r *sealed) least() uint64 { return uint64(times(int64(r.RTMin), r.Complete)) }

// expect is about how many bits one of the times of a record has, those before it having n: the shortest response time is
// milliseconds, the longest is some times that, and what was spent differs from their sum by what calls spend in another second.
func (r *sealed) expect(i int, n *[4]int) int {
	switch {
	case i == 3 && r.Complete > 0:
		return max(n[0], n[1])
	case i == 3 && (r.began > 0 || r.Pass > 0):
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
