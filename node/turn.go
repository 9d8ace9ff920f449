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
		st.end.Store(closed) // calls that enter from here on without a lock, and may be in the next bucket, see that
	}
	s.fold()
	next := s.first.shape.line.At(now)
	at := s.first.shape.second.Start(next.Line(now))
	for loan, ok := s.nextLoan(at - 1); ok; loan, ok = s.nextLoan(at - 1) {
		// The bucket that passes were borrowed from is over already. They go into it all the same.
		s.move(loan.at)
		s.lend(loan)
		s.fold()
	}
	s.move(at)
	s.open(next, now)
	if loan, ok := s.nextLoan(at); ok {
		s.lend(loan)
	}
}

// open opens the bucket of the reading now, in the given second.
func (s *Statistic) open(second leap.Second, now leap.Reading) {
	window := &s.first.shape.second
	s.index = second.Index
	s.at = window.Start(second.Line(now))
	begin, end := second.Reading(s.at), second.Reading(s.at+window.Length())
	slewed := begin.Sub(s.end.Add(-window.Length()))
	s.end = end
	for st := range s.stripes {
		st.length.Store(int32(end - begin))
		st.end.Store(s.mark())
		more := time.Duration(st.inFlight) * slewed
		s.spent += more
		st.late += max(more, 0)
	}
	if r := s.rings; r != noRings {
		r.passes = 0
		for _, b := range r.window.Window(s.at, time.Second) {
			r.passes = saturate(r.passes, b.Pass)
		}
	}
}

// move goes on from the bucket that was folded to the one that starts at the line time at. The calls in flight were so in all
// the buckets between, whose seconds are sealed.
func (s *Statistic) move(at time.Duration) {
	length := s.first.shape.second.Length()
	from, index := s.at+length, secondOf(at)
	var inFlight int64
	for st := range s.stripes {
		inFlight += int64(st.inFlight)
	}
	if index > s.index {
		s.spent += time.Duration(inFlight) * (secondAt(s.index+1) - from)
		s.seal(index)
		if inFlight > 0 {
			s.rings.spent.add(callTime{seconds: times(inFlight, index-s.index-1)})
		}
		s.index, from = index, secondAt(index)
	}
	s.spent += time.Duration(inFlight) * (at - from)
	s.at, s.end = at, s.end.Add(at-s.at) // which open corrects for slewed seconds
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
		c, spent := st.cut(s.end)
		sum.add(&c)
		if s.spent += spent; slewed {
			st.late += max(spent, 0)/100 + 1
		}
	}
	sum.OccupiedPass = s.rings.occupied
	if sum.Idle() {
		return
	}
	r := s.remember()
	r.occupied = 0
	r.window.Open(s.at).add(&sum)
	r.total.add(&sum)
	r.took += sum.RTSum
}

// remember returns the rings, and makes them if need be: they are what most of a statistic's memory is, and many statistics count
// nothing for long. Holds all locks.
func (s *Statistic) remember() *rings {
	if s.rings == noRings {
		r := *noRings
		r.window = s.first.shape.second
		s.rings = &r
	}
	return s.rings
}

// seal makes the record of the second that is open; next is the index of the one that will be. Only seconds in which
// something happened get a record; the others are known to be idle. Holds all locks.
func (s *Statistic) seal(next int64) {
	r := s.rings
	if r == noRings {
		return // nothing was counted yet, and so nothing is in flight
	}
	rec := sealed{began: int64(s.began)}
	for st := range s.stripes {
		inFlight := st.inFlight // at the cut
		rec.most = max(rec.most, int64(st.most), int64(inFlight))
		rec.inFlight += int64(inFlight)
		rec.late += st.late
		st.most, st.late = 0, 0
	}
	// Calls that left with a stamp from before the second, and rounded ones, may make this less than nothing, by as much as earlier
	// seconds have too much: later ones have that less.
	rec.spent = max(s.spent, 0)
	s.spent -= rec.spent
	r.spent.add(callTime{nanos: rec.spent})
	if s.more.Load() != nil {
		rec.most = surely(rec.most, rec.began, rec.inFlight, rec.spent, rec.late)
	}
	s.began = int32(rec.inFlight)
	start := secondAt(s.index)
	for _, b := range r.window.Window(start+time.Second-1, time.Second) {
		rec.Counts.add(b)
	}
	var scratch [8]int64
	slides := r.slides(scratch[:0], start, s.first.shape.perSec)
	if rec != (sealed{}) || slices.Max(slides) > 0 {
		s.keep(start, &rec, slides)
	}
	// The second after it may have been idle, and yet windows that end in it hold passes from before its start.
	if after := secondAt(s.index + 1); s.index+1 < next {
		slides := r.slides(scratch[:0], after, s.first.shape.perSec)
		if slices.Max(slides) > 0 {
			idle := idleSecond(rec.inFlight)
			s.keep(after, &idle, slides)
		}
	}
}

// keep packs the record of the second that starts at start, with the response times that the stripes hold.
func (s *Statistic) keep(start time.Duration, rec *sealed, slides []int64) {
	var scratch [256]byte
	r, shape, index := s.rings, s.first.shape, secondOf(start)
	r.histograms.drop(secondOf(start-shape.opts.Histograms) + 1)
	if rec.Complete > 0 {
		r.histograms.add(index, s.takeCells(scratch[:0], rec))
	}
	if last := r.history.drop(secondOf(start - shape.opts.History)); last != nil {
		if r.active = r.history.dropped; onlySlides(last, shape.perSec) {
			r.active--
		}
	}
	r.history.add(index, rec.append(scratch[:0], slides))
	slides[len(slides)-1] = rec.Pass // which may be too high for a slide
	r.peak.add(index, slides)
}

// mostPasses is where the passes of a bucket stop to count for slides, so that no sum of them overflows.
const mostPasses = math.MaxInt64 / 1024

// slides appends the passes of each window of one second that ends at the end of one of the buckets of the second that
// starts at start.
func (r *rings) slides(to []int64, start time.Duration, buckets int64) []int64 {
	length := r.window.Length()
	passes := func(at time.Duration) int64 {
		if b := r.window.At(at); b != nil {
			return min(b.Pass, mostPasses)
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
func (s *Statistic) peakOf(from, to int64, slides []int64) int64 {
	r := s.rings
	kept := r.history.last < to
	if kept && r.peak.from <= from && from <= r.peak.second {
		return r.peak.passes
	}
	p := peak{from: from, second: math.MaxInt64} // if there are no records
	perSec := s.first.shape.perSec
	s.eachSecond(from, to, slides, func(i int64, _ sealed) { p.add(i, slides[(i-from)*perSec:(i-from+1)*perSec]) })
	if kept {
		r.peak = p
	}
	return p.passes
}
