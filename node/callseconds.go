package node

import (
	"time"

	"github.com/windowstat/windowstat/leap"
)

// tally is what a stripe's open bucket holds. It fills a cache line.
type tally struct {
	Pass, Block, Complete, Exception int64 // Pass has only what entered does not tell, see Enter
	RTSum, RTMin, RTMax              time.Duration

	inFlightTime int64 // what calls spent in the bucket, as far as entered does not tell: see spent
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
func entryWord(now leap.Reading) uint64 {
	return uint64(now+tickMask)>>tickBits<<callBits + 1
}

// rest is how much later than it entered a call counts as in flight, until it leaves.
func tickRemainder(entered leap.Reading) int64 { return -int64(entered) & tickMask }

// calls is how many calls the difference of two words tells of.
func callsIn(word uint64) int64 { return int64(word & callMask) }

// covers reports whether a stamp is in the bucket of the mark, and the call may enter without the lock.
func (st *stripe) canEnterLockFree(mark int64, now leap.Reading) bool {
	return mark&slowPathBit == 0 && uint64(endOf(mark)-now-1) < uint64(st.length.Load())
}

// inFlightAt is how many calls are in flight, with entered as it was read. Holds mu.
func (st *stripe) inFlightAt(entered uint64) int32 {
	return int32((uint32(entered) - st.exited) & callMask)
}

func (st *stripe) inFlightNow() int32 { return st.inFlightAt(st.entered.Load()) }

// begin is where the time of a call begins that is counted in the open bucket: at its stamp, however long ago that is, and no
// later than the bucket ends. Holds mu.
func (st *stripe) effectiveEntry(now leap.Reading) leap.Reading {
	end := st.bucketEnd()
	st.lateEntry += max(end.Add(-time.Duration(st.length.Load())).Sub(now), 0)
	return min(now, end)
}

// admit lets a call in at the reading now. Holds mu.
func (st *stripe) enterLocked(now leap.Reading) {
	at := st.effectiveEntry(now)
	st.open.inFlightTime += tickRemainder(at) - tickRemainder(now)
	st.rtExcess -= max(now.Sub(at), 0)
	st.entered.Add(entryWord(at))
}

// join lets n calls in, which do not pass, at a reading. Holds mu.
func (st *stripe) addInFlight(n int64, at leap.Reading) {
	st.exited -= uint32(n)
	st.open.inFlightTime += n * int64(st.bucketEnd()-at)
}

// spent is what calls spend in the open bucket if those that are in flight stay until its end, with entered as it was read.
// Calls that left or entered late make it less or more than that by what earlier buckets had too much or too little. Holds mu.
func (st *stripe) inFlightTime(entered uint64, end leap.Reading) time.Duration {
	since := entered - st.enteredAtStart
	more := callsIn(since)*int64(end) - int64(since>>callBits<<tickBits) + st.open.inFlightTime
	more = more << (64 - areaBits) >> (64 - areaBits)
	return time.Duration(st.inFlightAtStart)*time.Duration(st.length.Load()) + time.Duration(more)
}

// spentNow is what all calls have spent since the statistic began. Holds mu and all stripes' locks.
func (s *Statistic) inFlightTimeNow() (sum callTime) {
	sum.add(callTime{nanos: s.inFlightTime})
	sum.add(s.history.inFlightTime)
	if s.retired() {
		return sum
	}
	var inFlight int64
	for st := range s.stripes {
		entered := st.entered.Load()
		inFlight += int64(st.inFlightAt(entered))
		sum.add(callTime{nanos: st.inFlightTime(entered, s.end)})
	}
	if inFlight > 0 {
		// The clock is read after the words, so that no stamp in them is later.
		left := max(s.end.Sub(s.first.shape.line.Now()), 0)
		sum.add(callTime{nanos: -time.Duration(inFlight) * left})
	}
	return sum
}

// age is for how long the calls in flight have been so, all together: what all have spent, less what those took that have ended. So
// it is their response times so far: of a call that was backdated, or waited for what it borrowed, more than it has spent. Holds
// mu and all stripes' locks. Without calls it is what these were rounded by.
func (s *Statistic) inFlightAge(spent callTime) time.Duration {
	age := time.Duration(spent.seconds)*time.Second + spent.nanos - s.history.rtSum // wraps, as took does
	for st := range s.stripes {
		age += st.rtExcess - st.open.RTSum
	}
	return max(age, 0)
}

// callTime is a sum of times that calls spent. A thousand calls at once spend an int64 of nanoseconds in a hundred days.
type callTime struct {
	seconds int64
	nanos   time.Duration // of a second, from 0 on
}

func (t *callTime) add(o callTime) {
	nanos := t.nanos + o.nanos
	carry := secondIndex(nanos)
	t.seconds, t.nanos = t.seconds+o.seconds+carry, nanos-secondStart(carry)
}

func (t callTime) less(o callTime) bool {
	return t.seconds < o.seconds || t.seconds == o.seconds && t.nanos < o.nanos
}

// Seconds is the time in seconds.
func (t callTime) Seconds() float64 { return float64(t.seconds) + t.nanos.Seconds() }

// surely is how many calls were in flight at once in a second, at least: most, of some of them, and what all had when the second
// began and ended, and on average, rounded up. What they spent in the second may have more in it than they did there: late, and
// less than a tick for each call from before the second that ended in it.
func minConcurrency(most, began, ended int64, spent, late time.Duration) int64 {
	average := spent - late - time.Duration(began)<<tickBits
	return max(most, began, ended, int64((average+time.Second-1)/time.Second))
}

// add adds the record of a leaf's second.
func (m *MetricNode) add(rec *record, t *concurrencyBound) {
	t.maxInFlight = max(t.maxInFlight, rec.maxInFlight)
	t.inFlightAtStart += rec.inFlightAtStart
	t.lateEntry = time.Duration(saturate(int64(t.lateEntry), int64(rec.lateEntry)))
	m.Counts.add(&rec.Counts)
	m.InFlight += rec.inFlight
	m.InFlightTime = time.Duration(saturate(int64(m.InFlightTime), int64(rec.inFlightTime)))
}

// idleSecond is the record of a second in which nothing happened but that calls were in flight.
func idleSecond(inFlight int64) record {
	return record{inFlightAtStart: inFlight, inFlight: inFlight, maxInFlight: inFlight, inFlightTime: time.Duration(inFlight) * time.Second}
}

// atOnce is what the seconds of several leaves tell about how many calls they had in flight at once, beside what a [MetricNode] has.
type concurrencyBound struct {
	maxInFlight  int64         // of one leaf
	inFlightAtStart int64         // of all, when the second began
	lateEntry  time.Duration // of all
}
