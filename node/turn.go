package node

import (
	"math"
	"slices"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// advance moves the statistic to the reading now, if it is not there yet: the open bucket goes into the window, the second that has
// ended is sealed, and the bucket of now is opened. Holds mu. A statistic that is retired stays where it is. A reading that the clock has
// not reached counts as the present one, so that no reader can move a statistic, or open a bucket, ahead of the calls.
func (s *Statistic) advance(now leap.Reading) {
	if now < s.end || s.retired() {
		return
	}
	if now = min(now, s.first.shape.line.Now()); now < s.end {
		return
	}
	s.lockStripes()
	defer s.unlockStripes()
	for st := range s.stripes {
		st.end.Store(closedMark) // calls that enter from here on without a lock, and may be in the next bucket, see that
	}
	s.fold()
	next := s.first.shape.line.At(now)
	at := s.first.shape.second.Start(next.Line(now))
	for loan, ok := s.nextLoan(at - 1); ok; loan, ok = s.nextLoan(at - 1) {
		// The bucket that passes were borrowed from is over already. They go into it all the same.
		s.skipTo(loan.at)
		s.applyLoan(loan)
		s.fold()
	}
	s.skipTo(at)
	s.openBucket(next, now)
	if loan, ok := s.nextLoan(at); ok {
		s.applyLoan(loan)
	}
}

// open opens the bucket of the reading now, in the given second.
func (s *Statistic) openBucket(second leap.Second, now leap.Reading) {
	window := &s.first.shape.second
	s.second = second.Index
	s.start = window.Start(second.Line(now))
	begin, end := second.Reading(s.start), second.Reading(s.start+window.Length())
	slewed := begin.Sub(s.end.Add(-window.Length()))
	s.end = end
	for st := range s.stripes {
		st.length.Store(int32(end - begin))
		st.end.Store(s.endMark())
		more := time.Duration(st.inFlightAtStart) * slewed
		s.inFlightTime += more
		st.lateEntry += max(more, 0)
	}
	if r := s.history; r != emptyHistory {
		r.windowPasses = 0
		for _, b := range r.window.Window(s.start, time.Second) {
			r.windowPasses = saturate(r.windowPasses, b.Pass)
		}
	}
}

// move goes on from the bucket that was folded to the one that starts at the line time at. The calls in flight were so in all
// the buckets between, whose seconds are sealed.
func (s *Statistic) skipTo(at time.Duration) {
	length := s.first.shape.second.Length()
	from, index := s.start+length, secondIndex(at)
	var inFlight int64
	for st := range s.stripes {
		inFlight += int64(st.inFlightAtStart)
	}
	if index > s.second {
		s.inFlightTime += time.Duration(inFlight) * (secondStart(s.second+1) - from)
		s.seal(index)
		if inFlight > 0 {
			s.history.inFlightTime.add(callTime{seconds: times(inFlight, index-s.second-1)})
		}
		s.second, from = index, secondStart(index)
	}
	s.inFlightTime += time.Duration(inFlight) * (at - from)
	s.start, s.end = at, s.end.Add(at-s.start) // which open corrects for slewed seconds
	for st := range s.stripes {
		st.length.Store(int32(length))
	}
}

// fold moves the counts of the open bucket from the stripes into the window. An idle bucket is not even opened, so
// that an idle statistic costs nothing.
func (s *Statistic) fold() {
	var sum Counts
	slewed := time.Duration(s.first.length.Load()) > s.first.shape.second.Length()+1
	for st := range s.stripes {
		c, spent := st.closeBucket(s.end)
		sum.add(&c)
		if s.inFlightTime += spent; slewed {
			st.lateEntry += max(spent, 0)/100 + 1
		}
	}
	sum.OccupiedPass = s.history.occupied
	if sum.Idle() {
		return
	}
	r := s.ensureHistory()
	r.occupied = 0
	r.window.Open(s.start).add(&sum)
	r.total.add(&sum)
	r.rtSum += sum.RTSum
}

// remember returns the rings, and makes them if need be: they are what most of a statistic's memory is, and many statistics count
// nothing for long. Holds all locks.
func (s *Statistic) ensureHistory() *history {
	if s.history == emptyHistory {
		r := *emptyHistory
		r.window = s.first.shape.second
		s.history = &r
	}
	return s.history
}

// seal makes the record of the second that is open; next is the index of the one that will be. Only seconds in which
// something happened get a record; the others are known to be idle. Holds all locks.
func (s *Statistic) seal(next int64) {
	r := s.history
	if r == emptyHistory {
		return // nothing was counted yet, and so nothing is in flight
	}
	rec := record{inFlightAtStart: int64(s.inFlightAtStart)}
	for st := range s.stripes {
		inFlight := st.inFlightAtStart // at the cut
		rec.maxInFlight = max(rec.maxInFlight, int64(st.maxInFlight), int64(inFlight))
		rec.inFlight += int64(inFlight)
		rec.lateEntry += st.lateEntry
		st.maxInFlight, st.lateEntry = 0, 0
	}
	// Calls that left with a stamp from before the second, and rounded ones, may make this less than nothing, by as much as earlier
	// seconds have too much: later ones have that less.
	rec.inFlightTime = max(s.inFlightTime, 0)
	s.inFlightTime -= rec.inFlightTime
	r.inFlightTime.add(callTime{nanos: rec.inFlightTime})
	if s.extra.Load() != nil {
		rec.maxInFlight = minConcurrency(rec.maxInFlight, rec.inFlightAtStart, rec.inFlight, rec.inFlightTime, rec.lateEntry)
	}
	s.inFlightAtStart = int32(rec.inFlight)
	start := secondStart(s.second)
	for _, b := range r.window.Window(start+time.Second-1, time.Second) {
		rec.Counts.add(b)
	}
	var scratch [8]int64
	slides := r.slides(scratch[:0], start, s.first.shape.perSec)
	if rec != (record{}) || slices.Max(slides) > 0 {
		s.store(start, &rec, slides)
	}
	// The second after it may have been idle, and yet windows that end in it hold passes from before its start.
	if after := secondStart(s.second + 1); s.second+1 < next {
		slides := r.slides(scratch[:0], after, s.first.shape.perSec)
		if slices.Max(slides) > 0 {
			idle := idleSecond(rec.inFlight)
			s.store(after, &idle, slides)
		}
	}
}

// keep packs the record of the second that starts at start, with the response times that the stripes hold.
func (s *Statistic) store(start time.Duration, rec *record, slides []int64) {
	var scratch [256]byte
	r, shape, index := s.history, s.first.shape, secondIndex(start)
	r.histograms.drop(secondIndex(start-shape.opts.Histograms) + 1)
	if rec.Complete > 0 {
		r.histograms.add(index, s.packCells(scratch[:0], rec))
	}
	if last := r.seconds.drop(secondIndex(start - shape.opts.History)); last != nil {
		if r.activeDropped = r.seconds.dropped; onlySlides(last, shape.perSec) {
			r.activeDropped--
		}
	}
	r.seconds.add(index, rec.append(scratch[:0], slides))
	slides[len(slides)-1] = rec.Pass // which may be too high for a slide
	r.peak.add(index, slides)
}

// mostPasses is where the passes of a bucket stop to count for slides, so that no sum of them overflows.
const maxSlidePasses = math.MaxInt64 / 1024

// slides appends the passes of each window of one second that ends at the end of one of the buckets of the second that
// starts at start.
func (r *history) slides(to []int64, start time.Duration, buckets int64) []int64 {
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
		to = append(to, sum)
		sum -= passes(at - time.Duration(buckets-1)*length)
	}
	return to
}

// peak is the highest slide of the records from a second on. It is kept while records are added, and found again when the second
// that has it is not asked for any more. Without it each snapshot of a busy statistic would unpack a minute of records, and take
// ten times as long.
type peak struct {
	passes int64
	second int64 // the last that has it
	from   int64
}

// add takes the slides of the next record.
func (p *peak) add(second int64, slides []int64) {
	if passes := slices.Max(slides); passes >= p.passes {
		p.passes, p.second = passes, second
	}
}

// peakOf is the highest slide of the records in the minute window of the seconds from from to before to. It needs slides to count in,
// see eachSecond. Holds mu.
func (s *Statistic) minutePeak(from, to int64, slides []int64) int64 {
	r := s.history
	kept := r.seconds.lastSecond < to
	if kept && r.peak.from <= from && from <= r.peak.second {
		return r.peak.passes
	}
	p := peak{from: from, second: math.MaxInt64} // if there are no records
	perSec := s.first.shape.perSec
	s.eachSecond(from, to, slides, func(i int64, _ record) { p.add(i, slides[(i-from)*perSec:(i-from+1)*perSec]) })
	if kept {
		r.peak = p
	}
	return p.passes
}
