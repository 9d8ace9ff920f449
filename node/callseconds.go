package node

import "time"

// callTime is a number of call-seconds. It has two fields because an int64 of nanoseconds would overflow after a
// hundred days with a thousand calls in flight.
type callTime struct {
	seconds int64
	nanos   time.Duration // at least 0, less than a second
}

// add adds o to t.
func (t *callTime) add(o callTime) {
	nanos := t.nanos + o.nanos
	carry := secondIndex(nanos)
	t.seconds, t.nanos = t.seconds+o.seconds+carry, nanos-secondStart(carry)
}

// less reports whether t is less than o.
func (t callTime) less(o callTime) bool {
	return t.seconds < o.seconds || t.seconds == o.seconds && t.nanos < o.nanos
}

// Seconds returns t in seconds.
func (t callTime) Seconds() float64 { return float64(t.seconds) + t.nanos.Seconds() }

// inFlightTimeNow returns the call-seconds of all calls since s began. The result includes the time until the current
// reading of the clock. If the open bucket ends before this reading, the result includes only the time until the end of
// the bucket. mu and all stripe locks must be held, or s must be retired.
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
		// Read the clock after the call words, so that no stamp in a call word is later than this reading.
		left := max(s.end.Sub(s.first.config.line.Now()), 0)
		sum.add(callTime{nanos: -time.Duration(inFlight) * left})
	}
	return sum
}

// inFlightAge returns the sum of the ages of the calls in flight. The parameter spent holds the call-seconds of all
// calls since s began. An ended call has spent its response time, so inFlightAge subtracts the sum of all response
// times from spent. The ages of the calls in flight remain.
//
// The response time of some calls differs from their call-seconds, for example if a call was backdated or waited for a
// loan. rtExcess holds the sum of these differences, and inFlightAge adds it. Without calls in flight, the result is
// the rounding error of past calls. mu and all stripe locks must be held.
func (s *Statistic) inFlightAge(spent callTime) time.Duration {
	// rtSum and the call-seconds may both wrap in an int64. Their difference is right anyway.
	age := time.Duration(spent.seconds)*time.Second + spent.nanos - s.history.rtSum
	for st := range s.stripes {
		age += st.rtExcess - st.open.RTSum
	}
	return max(age, 0)
}

// minConcurrency returns a lower bound of the maximum in flight in a second. The bound is the highest of four numbers:
//
//   - most: the highest maximum of one stripe or leaf,
//   - began: the calls in flight at the start of the second,
//   - ended: the calls in flight at the end of the second,
//   - the average in flight, rounded up.
//
// The average is computed from spent, the call-seconds of the second. Two parts of spent must not raise the average, so
// minConcurrency subtracts them. The first part is lateEntry: the call-seconds that late entries spent before the
// second, and the call-seconds that slewing added. The second part comes from rounding: the stamp of an entry is
// rounded up by less than a tick, and the exit adds this difference to the second in which the call exits.
// minConcurrency therefore subtracts one tick for each call that was in flight at the start of the second.
func minConcurrency(most, began, ended int64, spent, lateEntry time.Duration) int64 {
	average := spent - lateEntry - time.Duration(began)<<tickBits
	return max(most, began, ended, int64((average+time.Second-1)/time.Second))
}

// concurrencyBound holds the inputs of minConcurrency that a [MetricNode] lacks, combined over several leaves.
type concurrencyBound struct {
	maxInFlight     int64         // the highest of the leaves' maxima in flight
	inFlightAtStart int64         // calls in flight at the start of the second, summed over the leaves
	lateEntry       time.Duration // sum of record.lateEntry over the leaves
}

// add adds rec, the record of one leaf, to m. It also updates t, the inputs of minConcurrency, with the values of rec.
func (m *MetricNode) add(rec *record, t *concurrencyBound) {
	t.maxInFlight = max(t.maxInFlight, rec.maxInFlight)
	t.inFlightAtStart += rec.inFlightAtStart
	t.lateEntry = time.Duration(saturate(int64(t.lateEntry), int64(rec.lateEntry)))
	m.Counts.add(&rec.Counts)
	m.InFlight += rec.inFlight
	m.InFlightMaxUpper += rec.maxInFlightUpper
	m.InFlightTime = time.Duration(saturate(int64(m.InFlightTime), int64(rec.inFlightTime)))
}

// idleSecond returns the record of a second without events and with a constant number of calls in flight.
func idleSecond(inFlight int64) record {
	return record{
		inFlightAtStart: inFlight, inFlight: inFlight, maxInFlight: inFlight, maxInFlightUpper: inFlight,
		inFlightTime: time.Duration(inFlight) * time.Second,
	}
}
