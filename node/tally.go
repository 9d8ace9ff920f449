package node

import (
	"time"

	"github.com/windowstat/windowstat/leap"
)

// tally is what a stripe's open bucket holds. It fills a cache line.
type tally struct {
	Pass, Block, Complete, Exception int64 // Pass has only what entered does not tell, see Enter
	RTSum, RTMin, RTMax              time.Duration

	area int64 // what calls spent in the bucket, as far as entered does not tell: see spent
}

// complete counts n calls that took rt each.
func (t *tally) complete(rt time.Duration, n int64, failed bool) {
	if t.Complete == 0 || rt < t.RTMin {
		t.RTMin = rt
	}
	if rt > t.RTMax {
		t.RTMax = rt
	}
	sum := int64(rt)
	if n != 1 {
		sum = times(sum, n)
	}
	t.RTSum = time.Duration(saturate(int64(t.RTSum), sum))
	t.Complete = saturate(t.Complete, n)
	if failed {
		t.Exception = saturate(t.Exception, n)
	}
}

// What calls spend in a bucket is how many were in flight when it began, times its length, and for each one that enters the
// time that is left until its end, less the same for each one that leaves. A call that enters must tell when, by the one
// addition that it makes. So the word that it adds to has the number of calls in its low bits, and above them the sum of
// their stamps, in ticks, rounded up; the stamps of n calls that are left until the end are n times that less the sum.
// The sum wraps, and nothing is lost: what is wanted is known to be near what was in flight when the bucket began, to some
// six days of calls. The rest of the tick is added when the call leaves, which knows its stamp.
const (
	callBits = 26 // so many calls can enter by one stripe in a bucket, and be in flight: 67 million
	tickBits = 12 // of nanoseconds: 4.1 µs
	areaBits = 64 - callBits + tickBits

	callMask = 1<<callBits - 1
	tickMask = 1<<tickBits - 1
)

// entry is what a call that enters at the reading now adds to the word.
func entry(now leap.Reading) uint64 {
	return uint64(now+tickMask)>>tickBits<<callBits + 1
}

// rest is how much later than it entered a call counts as in flight, until it leaves.
func rest(entered leap.Reading) int64 { return -int64(entered) & tickMask }

// calls is how many calls the difference of two words tells of.
func calls(word uint64) int64 { return int64(word & callMask) }

// fresh reports whether a stamp is from the second before the reading end: such a call counts as in flight from its stamp
// on, also if that is before the bucket.
func fresh(end, now leap.Reading) bool {
	return uint64(end-now-1) < uint64(time.Second)
}

// inFlightAt is how many calls are in flight, with entered as it was read. Holds mu.
func (st *stripe) inFlightAt(entered uint64) int32 {
	return int32((uint32(entered) - st.exited) & callMask)
}

func (st *stripe) inFlightNow() int32 { return st.inFlightAt(st.entered.Load()) }

// left is the time from the reading now to the end of the open bucket, for a call that leaves. One whose stamp is older than
// the bucket leaves when that began, or when a snapshot was taken since: what is sealed or told does not change. Holds mu.
func (st *stripe) left(end, now leap.Reading) time.Duration {
	return time.Duration(min(max(int64(end-now), 0), int64(st.reach)))
}

// admit lets a call in at the reading now. Holds mu.
func (st *stripe) admit(now leap.Reading) {
	end := st.ends()
	at := now
	if !fresh(end, now) { // long ago, or to come
		at = min(max(now, end.Add(-st.shape.second.Length())), end)
		st.open.area += rest(at) - rest(now)
	}
	st.entered.Add(entry(at))
}

// join lets n calls in, which do not pass, when the bucket has so much left. Holds mu.
func (st *stripe) join(n int64, left time.Duration) {
	st.exited -= uint32(n)
	st.open.area += n * int64(left)
}

// spent is what calls spend in the open bucket if those that are in flight stay until its end, with entered as it was read.
// Holds mu.
func (st *stripe) spent(entered uint64, end leap.Reading) time.Duration {
	since := entered - st.base
	more := calls(since)*int64(end) - int64(since>>callBits<<tickBits) + st.open.area
	more = more << (64 - areaBits) >> (64 - areaBits)
	return time.Duration(st.inFlight)*st.shape.second.Length() + time.Duration(more)
}

// spentNow is what all calls have spent since the statistic began. Holds mu and all stripes' locks.
func (s *Statistic) spentNow() callTime {
	sum := callTime{nanos: s.spent}
	if s.rings != nil {
		sum.add(s.rings.spent)
	}
	if s.retired {
		return sum
	}
	var inFlight int64
	for st := range s.stripes {
		entered := st.entered.Load()
		inFlight += int64(st.inFlightAt(entered))
		sum.add(callTime{nanos: st.spent(entered, s.end)})
	}
	if inFlight > 0 {
		// The clock is read after the words, so that no stamp in them is later.
		left := s.first.left(s.end, s.first.shape.line.Now())
		for st := range s.stripes {
			st.reach = int32(left)
		}
		sum.add(callTime{nanos: -time.Duration(inFlight) * left})
	}
	if r := s.rings; r != nil || sum != (callTime{}) {
		// Calls in flight are rounded, so it may be some microseconds less than the last time.
		r = s.remember()
		if sum.less(r.told) {
			return r.told
		}
		r.told = sum
	}
	return sum
}

// callTime is a sum of times that calls spent. A thousand calls at once spend an int64 of nanoseconds in a hundred days.
type callTime struct {
	seconds int64
	nanos   time.Duration // of a second, from 0 on
}

func (t *callTime) add(o callTime) {
	nanos := t.nanos + o.nanos
	carry := secondOf(nanos)
	t.seconds, t.nanos = t.seconds+o.seconds+carry, nanos-secondAt(carry)
}

func (t callTime) less(o callTime) bool {
	return t.seconds < o.seconds || t.seconds == o.seconds && t.nanos < o.nanos
}

// Seconds is the time in seconds.
func (t callTime) Seconds() float64 { return float64(t.seconds) + t.nanos.Seconds() }
