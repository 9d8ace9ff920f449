package node

import (
	"time"

	"github.com/windowstat/windowstat/leap"
)

// tally holds the counts of the open bucket of a stripe. It fills a cache line.
type tally struct {
	Pass, Block, Complete, Exception int64 // Pass lacks the entries that the call word counts
	RTSum, RTMin, RTMax              time.Duration

	// inFlightTime is a correction, in nanoseconds, of the call-seconds that stripe.inFlightTime computes from the call
	// word. Each exit subtracts the time from the stamp of the exit to the end of the bucket. It also adds the time by
	// which the stamp of the call's entry was rounded up. addInFlight adds the time of calls that are not in the call
	// word.
	inFlightTime int64
}

// complete counts n completions, each with the response time rt. If failed is true, complete also counts n exceptions.
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

// These constants describe the layout of the call word. The package comment has a drawing.
//
// The call-seconds of a bucket have three parts. Each call that is in flight at the start of the bucket adds the length
// of the bucket. Each entry adds the time from its stamp to the end of the bucket. Each exit subtracts the time from
// its stamp to the end of the bucket. The call word yields the second part: n entries add n times the end of the
// bucket, minus the sum of their stamps.
const (
	// callBits is the number of bits for the number of entries. The counts are wrong if 2^26 = 67 million calls or more
	// enter through a stripe in one bucket, or are in flight in a stripe.
	callBits = 26
	tickBits = 12                       // a tick is 2^12 ns = 4.1 µs
	areaBits = 64 - callBits + tickBits // the call word yields call-seconds modulo 2^areaBits ns

	callMask = 1<<callBits - 1
	tickMask = 1<<tickBits - 1
)

// entryWord returns the value that an entry at the reading now adds to the call word. The value contains one call, and
// the stamp in ticks, rounded up.
func entryWord(now leap.Reading) uint64 {
	return uint64(now+tickMask)>>tickBits<<callBits + 1
}

// tickRemainder returns the time by which entryWord rounds the given stamp up. The call-seconds of a call are too low
// by this time until the call exits.
func tickRemainder(stamp leap.Reading) int64 { return -int64(stamp) & tickMask }

// callsIn returns the number of entries between two values of the call word. The parameter word is the difference of
// these values.
func callsIn(word uint64) int64 { return int64(word & callMask) }

// inFlightAt returns the number of calls in flight if the call word has the value entered. mu must be held.
func (st *stripe) inFlightAt(entered uint64) int32 {
	return int32((uint32(entered) - st.exited) & callMask)
}

// inFlightNow returns the number of calls in flight. mu must be held.
func (st *stripe) inFlightNow() int32 { return st.inFlightAt(st.entered.Load()) }

// effectiveEntry returns the reading from which a call with the stamp now adds to the call-seconds of the open bucket.
// This reading is the stamp, or the end of the bucket if the stamp is after the end. If the stamp is late,
// effectiveEntry also adds the time from the stamp to the start of the bucket to lateEntry. mu must be held.
func (st *stripe) effectiveEntry(now leap.Reading) leap.Reading {
	end := st.bucketEnd()
	st.lateEntry += max(end.Add(-time.Duration(st.length.Load())).Sub(now), 0)
	return min(now, end)
}

// enterLocked records the entry of a call with the stamp now. mu must be held.
func (st *stripe) enterLocked(now leap.Reading) {
	at := st.effectiveEntry(now)
	st.open.inFlightTime += tickRemainder(at) - tickRemainder(now)
	st.rtExcess -= max(now.Sub(at), 0)
	st.entered.Add(entryWord(at))
}

// addInFlight adds n calls to the calls in flight, from the reading begin on. These calls count no passes. An addition
// to the call word would also count passes, so addInFlight lowers the number of exits instead. mu must be held.
func (st *stripe) addInFlight(n int64, begin leap.Reading) {
	st.exited -= uint32(n)
	st.open.inFlightTime += n * int64(st.bucketEnd()-begin)
}

// inFlightTime returns the call-seconds of the open bucket, as if all calls in flight stayed until the end of the
// bucket. The parameter end is the end of the bucket, and entered is a value of the call word: the result includes the
// entries that this value includes. The result may be negative, because late exits also subtract time that earlier
// buckets counted, and because stamps are rounded.
//
// The comment on callBits describes the three parts of the result. The part of the calls in flight at the start is
// computed without the call word. The variable rest is the sum of the other two parts. The call word yields only the
// low areaBits bits of this sum, so inFlightTime extends the sign to the other bits. mu must be held.
func (st *stripe) inFlightTime(entered uint64, end leap.Reading) time.Duration {
	since := entered - st.enteredAtStart
	rest := callsIn(since)*int64(end) - int64(since>>callBits<<tickBits) + st.open.inFlightTime
	rest = rest << (64 - areaBits) >> (64 - areaBits)
	return time.Duration(st.inFlightAtStart)*time.Duration(st.length.Load()) + time.Duration(rest)
}
