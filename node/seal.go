package node

import (
	"math"
	"slices"
	"time"
)

// seal creates the record of the open second. The parameter next is the index of the second that opens next. The open
// second gets a record if it had an event, a call in flight, or passes in a sliding window that ended in it. The
// seconds between the open second and the second next are skipped, and get no records. There is one exception: the
// first skipped second gets a record if sliding windows that end in it contain passes of the open second. mu and all
// stripe locks must be held.
func (s *Statistic) seal(next int64) {
	r := s.history
	if r == emptyHistory {
		return // nothing was counted, and no call is in flight
	}
	rec := record{inFlightAtStart: int64(s.inFlightAtStart)}
	for st := range s.stripes {
		// closeBucket has closed the last bucket of the second, and has set st.inFlightAtStart to the number of calls
		// in flight at the end of the second.
		inFlight := st.inFlightAtStart
		most := int64(max(st.maxInFlight, inFlight))
		rec.maxInFlight = max(rec.maxInFlight, most)
		rec.maxInFlightUpper += most
		rec.inFlight += int64(inFlight)
		rec.lateEntry += st.lateEntry
		st.maxInFlight, st.lateEntry = 0, 0
	}
	// s.inFlightTime may be negative, for two reasons. A late exit subtracts call-seconds that earlier seconds counted
	// in excess. The other reason is that the stamp of an entry is rounded up: if the rounded stamp lies after the end
	// of the bucket, the entry adds a negative time. The record must not have negative call-seconds, so the negative
	// rest stays in s.inFlightTime, for the next second.
	rec.inFlightTime = max(s.inFlightTime, 0)
	s.inFlightTime -= rec.inFlightTime
	r.inFlightTime.add(callTime{nanos: rec.inFlightTime})
	if s.extra.Load() != nil {
		// With several stripes, the exact maximum is not known, and minConcurrency computes a lower bound. This bound
		// may exceed the true maximum, see the caveats in the package comment. The packed record contains the upper
		// bound minus the lower bound. This difference must not be negative, so the lower bound is limited to the upper
		// bound.
		rec.maxInFlight = min(rec.maxInFlightUpper, minConcurrency(
			rec.maxInFlight, rec.inFlightAtStart, rec.inFlight, rec.inFlightTime, rec.lateEntry))
	}
	s.inFlightAtStart = int32(rec.inFlight)
	start := secondStart(s.second)
	for _, b := range r.window.Window(start+time.Second-1, time.Second) {
		rec.Counts.add(b)
	}
	var scratch [8]int64
	slides := r.slides(scratch[:0], start, s.first.config.perSec)
	if rec != (record{}) || slices.Max(slides) > 0 {
		s.store(start, &rec, slides)
	}
	// Sliding windows may contain passes of the sealed second but end in the second after it. If that second is
	// skipped, it gets a record for the slides of these windows.
	if after := secondStart(s.second + 1); s.second+1 < next {
		slides := r.slides(scratch[:0], after, s.first.config.perSec)
		if slices.Max(slides) > 0 {
			idle := idleSecond(rec.inFlight)
			s.store(after, &idle, slides)
		}
	}
}

// store packs rec, the record of the second that starts at the line time start. It also packs the response times of
// this second, which the stripes hold. First, store drops old records and histograms. If calls ended in the second, it
// then appends the packed histogram to history.histograms. In any case, it appends the packed record to
// history.seconds, and updates the cached peak with the slides. mu and all stripe locks must be held.
func (s *Statistic) store(start time.Duration, rec *record, slides []int64) {
	var scratch [256]byte
	r, index := s.history, secondIndex(start)
	s.dropRecords(start)
	if rec.Complete > 0 {
		r.histograms.add(index, s.packCells(scratch[:0], rec))
	}
	r.seconds.add(index, rec.append(scratch[:0], slides))
	// The window of the last slide is the second itself, so this slide is Pass. The method slides may have computed a
	// smaller number, because it limits the passes of a bucket to maxSlidePasses. The method record.unpack sets the
	// last slide to Pass, too, so a peak that is computed from the packed records is the same.
	slides[len(slides)-1] = rec.Pass
	r.peak.add(index, slides)
}

// dropRecords drops old records and histograms. The parameter latest is a line time in the latest second to keep. With
// an [Options].Histograms of 60 seconds, dropRecords keeps the histograms of this second and of the 59 seconds before
// it. With an [Options].History of 600 seconds, it keeps the records of this second and of the 600 seconds before it:
// one second more than History. mu must be held.
func (s *Statistic) dropRecords(latest time.Duration) {
	r, config := s.history, s.first.config
	r.histograms.drop(secondIndex(latest-config.opts.Histograms) + 1)
	if last := r.seconds.drop(secondIndex(latest - config.opts.History)); last != nil {
		if r.activeDropped = r.seconds.dropped; onlySlides(last, config.perSec) {
			r.activeDropped-- // the second of the record last was idle, and the second before it was active
		}
	}
}

// maxSlidePasses limits the passes that one bucket adds to a slide. A slide is the sum of at most maxSampleCount = 500
// buckets, so it fits into an int64.
const maxSlidePasses = math.MaxInt64 / 1024

// slides appends slides to dst: the slides of the second that starts at the line time start. The parameter buckets is
// the number of buckets in a second. Each slide is the number of passes in a one-second window that ends with a bucket
// of this second:
//
//	second      |------- 8 -------|------- 9 -------|     4 buckets in a second
//	bucket      | 1 | 0 | 2 | 3 | 4 | 0 | 1 | 5 |
//	slide of 9:      |  0 + 2 + 3 + 4  |          = 9
//	                     |  2 + 3 + 4 + 0  |      = 9
//	                         |  3 + 4 + 0 + 1  |  = 8
//	                             | 4 + 0 + 1 + 5 | = 10, the passes of second 9
func (r *history) slides(dst []int64, start time.Duration, buckets int64) []int64 {
	length := r.window.Length()
	passes := func(at time.Duration) int64 {
		if b := r.window.At(at); b != nil {
			return min(b.Pass, maxSlidePasses)
		}
		return 0
	}
	var sum int64
	for i := 1 - buckets; i < buckets; i++ {
		at := start + time.Duration(i)*length
		sum += passes(at)
		if i < 0 {
			continue
		}
		dst = append(dst, sum)
		sum -= passes(at - time.Duration(buckets-1)*length)
	}
	return dst
}

// peak caches the highest slide of all records since the second firstSecond. Each new record updates the cache. When
// the second with the highest slide leaves the minute window, minutePeak computes the peak from the records again.
// Without the cache, each snapshot of a busy statistic would unpack a minute of records and take ten times as long.
//
// If several slides are equally high, the cache holds the latest one, because its second leaves the minute window last.
type peak struct {
	passes      int64 // the highest slide
	second      int64 // last second with a slide of this height
	firstSecond int64 // first second that the cache includes
}

// add updates p with the slides of a newly sealed second.
func (p *peak) add(second int64, slides []int64) {
	if passes := slices.Max(slides); passes >= p.passes {
		p.passes, p.second = passes, second
	}
}

// minutePeak returns the highest slide of the records in the seconds [from, to). The parameter slides is scratch
// memory: it must contain a zero for each slide of these seconds, see eachSecond. mu must be held.
func (s *Statistic) minutePeak(from, to int64, slides []int64) int64 {
	r := s.history
	// The cache includes every record since peak.firstSecond, even records after the range [from, to). minutePeak may
	// therefore use or replace the cache only if no record is after this range.
	cacheable := r.seconds.lastSecond < to
	if cacheable && r.peak.firstSecond <= from && from <= r.peak.second {
		return r.peak.passes
	}
	p := peak{firstSecond: from, second: math.MaxInt64} // without records, the peak is 0 and never too old
	perSec := s.first.config.perSec
	s.eachSecond(from, to, slides, func(i int64, _ record) { p.add(i, slides[(i-from)*perSec:(i-from+1)*perSec]) })
	if cacheable {
		r.peak = p
	}
	return p.passes
}
