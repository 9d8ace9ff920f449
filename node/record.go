package node

import (
	"math/bits"
	"time"
)

// record holds the numbers of one sealed second of a statistic. The slides of this second are stored together with its
// record. A slide is the number of passes in a window of one second that ends with a bucket of the sealed second. The
// window of the last slide is the sealed second itself, so the last slide equals Pass. All slides are stored, not only
// the highest one (the peak): the peak of a view can be computed from the slides of its leaves, but not from the peaks
// of its leaves.
type record struct {
	Counts
	inFlightAtStart, inFlight int64         // calls in flight at the start and at the end of the second
	maxInFlight               int64         // maximum in flight; with several stripes a lower bound, see minConcurrency
	maxInFlightUpper          int64         // upper bound of the maximum: the sum of the maxima of the stripes
	inFlightTime              time.Duration // call-seconds of the second
	lateEntry                 time.Duration // upper bound of the call-seconds that late entries and slewing added
}

// append appends the packed slides and the packed record to b, in this order:
//
//	Pass | slides | Complete, in flight at the start, maximum, mask | lengths of the times | rare fields | times
//	kPass  kSlide   kMost (four numbers)                              kMost (four numbers)   kMost         bits
//
// The second line of the drawing shows how the numbers are written: in Rice code with the parameter kPass, kSlide or
// kMost, or as plain bits. Most numbers are written as the difference from a prediction, which is computed from earlier
// numbers. The last slide is left out, because it equals Pass.
//
// A rare field is stored only if it is not 0. The mask has one bit for each rare field, which is set if the field is
// stored. One rare field is the upper bound of the maximum in flight, minus the lower bound. With one stripe both
// bounds are equal, and this field takes no space.
//
// The times are listed at expectedBits. The length of a time is the number of its bits. The sum of the response times
// and the call-seconds cannot be predicted well, and take most of the space.
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

// unpack sets r to the packed record in b. The parameter perSec is the number of buckets in a second, which is also the
// number of slides. If sums is not nil, unpack adds each slide to the element of sums with the same index.
func (r *record) unpack(b []byte, perSec int64, sums []int64) {
	in := readBits(b)
	r.Pass = int64(in.code(kPass))
	k := kSlide(r.Pass)
	for i := range perSec - 1 {
		v := r.Pass - unzigzag(in.code(k))
		if sums != nil {
			sums[i] = saturate(sums[i], v)
		}
	}
	if sums != nil {
		sums[perSec-1] = saturate(sums[perSec-1], r.Pass)
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

// These constants are Rice parameters: kPass is for Pass, and kMost is for most other numbers. The function kSlide
// returns the parameter for slides. A good parameter is about the number of bits of a typical number; the comment on
// bitWriter.code gives the reason.
const (
	kPass = 5
	kMost = 1
)

// kSlide returns the Rice parameter for the slides of a second. The parameter pass is the number of passes in the
// second. A slide is coded as its difference from Pass, and these differences grow with Pass.
func kSlide(pass int64) uint { return uint(min(bits.Len64(uint64(pass))/3, maxLowBits)) }

// expectedInFlight predicts the number of calls in flight at the end of the second. It assumes one pass and one
// completion for each call. If a batch enters or exits in the second, the prediction may be wrong.
func (r *record) expectedInFlight() int64 { return r.inFlightAtStart + r.Pass - r.Complete }

// minRTSum returns the smallest sum of the response times that is possible with the values of RTMin, RTMax and
// Complete. The sum is smallest if one call took RTMax, and all other calls took RTMin.
func (r *record) minRTSum() uint64 {
	return uint64(times(int64(r.RTMin), max(r.Complete-1, 0))) + uint64(r.RTMax)
}

// expectedBits predicts the number of bits of one of the four times of a record. The parameter i selects the time:
//
//	i   time                    prediction
//	0   RTMin                   23 bits: 4 to 8 ms
//	1   RTMax - RTMin           4 bits more than RTMin: about 16 times RTMin
//	2   RTSum - minRTSum        one or two bits less than the product Complete * (RTMax - RTMin) has
//	3   call-seconds - RTSum    as many bits as time 0 or time 1, whichever has more
//
// The elements of n before n[i] must contain the numbers of bits of the earlier times.
//
// The prediction for time 3 assumes a difference of about one response time, because calls spend a part of their time
// in other seconds. If no call is in flight, neither at the start of the second nor at its end, expectedBits assumes
// that call-seconds and RTSum are equal, and returns 0. If calls are in flight but none has ended in the second, it
// assumes about one call-second.
//
// A time that must be 0 takes 0 bits: RTMin if the second has no completion, RTMax - RTMin if it has at most one
// completion, and RTSum - minRTSum if it has at most two completions.
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

// onlySlides reports whether all numbers of the packed record b are 0, except for its slides. The second of such a
// record was idle. The record exists because sliding windows that ended in this second contain passes of the previous
// second. The parameter perSec is the number of buckets in a second.
func onlySlides(b []byte, perSec int64) bool {
	in := readBits(b)
	if in.code(kPass) > 0 {
		return false
	}
	var rec record
	rec.unpack(b, perSec, nil)
	return rec == record{}
}
