package node

import (
	"math/bits"
	"time"
)

// record is the record of a sealed second in a statistic. It is stored together with the slides of the second. A slide
// is the number of passes in a window of one second that ended with a bucket of the sealed second. The window of the
// last slide is the second itself, so the last slide equals Pass. All slides are stored, because the slides of several
// statistics can be summed, but their peaks cannot.
type record struct {
	Counts
	inFlightAtStart, inFlight int64         // calls in flight at the start and at the end of the second
	maxInFlight               int64         // maximum in flight; with several stripes a lower bound, see minConcurrency
	maxInFlightUpper          int64         // upper bound of the maximum: the sum of the maxima of the stripes
	inFlightTime              time.Duration // call-seconds of the second
	lateEntry                 time.Duration // upper bound of the call-seconds that late entries and slewing added
}

// append appends the packed slides and the packed record to b. It leaves out the last slide, which equals Pass:
//
//	Pass | slides | Complete, in flight, maximum, mask of rare fields | lengths of the times | rare fields | times
//	kPass  kSlide                 four numbers with kMost               four with kMost       kMost         bits
//
// The second line of the drawing shows the code: a Rice parameter, or plain bits. Most fields are coded as the
// difference from a prediction, which is computed from earlier fields. Rare fields are stored only if they are not
// zero. Response-time sums and call-seconds cannot be predicted well, and take most of the space. The upper bound of
// the maximum in flight is a rare field. It is stored as its difference from the lower bound. With one stripe both
// bounds are equal, and the field takes no space.
func (r *record) append(b []byte, slides []int64) []byte {
	w := bitWriter{b: b}
	w = w.code(uint64(r.Pass), kPass)
	k := kSlide(r.Pass)
	for _, v := range slides[:len(slides)-1] {
		w = w.code(zigzag(r.Pass-v), k)
	}
	rare := [...]uint64{
		uint64(r.Exception), uint64(r.Block), uint64(r.lateEntry), uint64(r.OccupiedPass),
		zigzag(r.inFlight - r.expectedInFlight()), uint64(r.maxInFlightUpper - r.maxInFlight),
	}
	var mask uint64
	for i, v := range rare {
		if v != 0 {
			mask |= 1 << i
		}
	}
	spans := [...]uint64{
		uint64(r.RTMin), uint64(r.RTMax - r.RTMin), uint64(r.RTSum) - r.minRTSum(),
		zigzag(int64(r.inFlightTime - r.RTSum)),
	}
	flight := [...]uint64{
		zigzag(r.Complete - r.Pass), uint64(r.inFlightAtStart),
		uint64(r.maxInFlight - max(r.inFlightAtStart, r.inFlight)), mask,
	}
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

// unpack sets r to the packed record in b. The parameter slides is the number of slides of a second. If sums is not
// nil, unpack adds the slides to sums.
func (r *record) unpack(b []byte, slides int64, sums []int64) {
	in := readBits(b)
	r.Pass = int64(in.code(kPass))
	k := kSlide(r.Pass)
	for i := range slides - 1 {
		v := r.Pass - unzigzag(in.code(k))
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
	var rare [6]uint64
	for mask := flight[3]; mask != 0; mask &= mask - 1 {
		rare[bits.TrailingZeros64(mask)] = in.code(kMost) + 1
	}
	r.Exception, r.Block, r.OccupiedPass = int64(rare[0]), int64(rare[1]), int64(rare[3])
	r.inFlight += unzigzag(rare[4])
	r.maxInFlight = max(r.inFlightAtStart, r.inFlight) + int64(flight[2])
	r.maxInFlightUpper = r.maxInFlight + int64(rare[5])
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

// These constants are Rice parameters, see bits.go: kPass is for Pass, and kMost is for most other numbers. The
// function kSlide returns the parameter for slides. A Rice parameter should be about the number of low bits that cannot
// be predicted.
const (
	kPass = 5
	kMost = 1
)

// kSlide returns the Rice parameter for the slides of a second. The parameter pass is the number of passes in the
// second. A slide is coded as its difference from Pass, and these differences grow with Pass.
func kSlide(pass int64) uint { return uint(min(bits.Len64(uint64(pass))/3, maxLowBits)) }

// expectedInFlight predicts the calls in flight at the end of the second. It assumes one pass and one completion for
// each call, so it is wrong for batches.
func (r *record) expectedInFlight() int64 { return r.inFlightAtStart + r.Pass - r.Complete }

// minRTSum returns the smallest possible sum of the response times. The sum is smallest if one call took RTMax, and all
// other calls took RTMin.
func (r *record) minRTSum() uint64 {
	return uint64(times(int64(r.RTMin), max(r.Complete-1, 0))) + uint64(r.RTMax)
}

// expectedBits predicts the number of bits of one of the four times of a record. The parameter i selects the time:
//
//	0   RTMin
//	1   RTMax - RTMin
//	2   RTSum - minRTSum
//	3   call-seconds - RTSum
//
// The elements of n before n[i] must contain the numbers of bits of the earlier times.
//
// expectedBits assumes that the shortest response time takes 4 to 8 ms (23 bits of nanoseconds), and the longest one 16
// times as long (4 bits more). It assumes that call-seconds and RTSum differ by about one response time, because calls
// spend a part of their time in other seconds. If no call is in flight at the start and at the end of the second,
// expectedBits assumes that call-seconds and RTSum are equal.
func (r *record) expectedBits(i int, n *[4]int) int {
	switch {
	case i == 3 && r.inFlightAtStart == 0 && r.inFlight == 0:
		return 0
	case i == 3 && r.Complete > 0:
		return max(n[0], n[1])
	case i == 3:
		return bits.Len64(uint64(time.Second))
	case i == 0 && r.Complete > 0:
		return 23
	case i == 1 && r.Complete > 1:
		return n[0] + 4
	case i == 2 && r.Complete > 2:
		return n[1] + bits.Len64(uint64(r.Complete)) - 2
	}
	return 0
}

// onlySlides reports whether the packed record b contains no events. The second of such a record was idle, but the
// sliding windows that ended in it contain passes of the previous second. The parameter slides is the number of slides
// of a second.
func onlySlides(b []byte, slides int64) bool {
	in := readBits(b)
	if in.code(kPass) > 0 {
		return false
	}
	var rec record
	rec.unpack(b, slides, nil)
	return rec == record{}
}
