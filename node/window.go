package node

import (
	"slices"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// Window is what happened in a window of time that ends with an open bucket: it slides by one bucket at a time, and
// its last bucket is not complete. It is a plain value, and comparable.
type Window struct {
	Counts
	// Span is how long the window is, the open bucket taken as a whole one.
	Span time.Duration
	// Length is how long one of its buckets is.
	Length time.Duration
	// MaxComplete is the most calls that ended in any one of its buckets.
	MaxComplete int64
}

// PassQPS is Pass per second.
func (w Window) PassQPS() float64 { return w.rate(w.Pass) }

// BlockQPS is Block per second.
func (w Window) BlockQPS() float64 { return w.rate(w.Block) }

// CompleteQPS is Complete per second: Sentinel's successQps.
func (w Window) CompleteQPS() float64 { return w.rate(w.Complete) }

// ExceptionQPS is Exception per second.
func (w Window) ExceptionQPS() float64 { return w.rate(w.Exception) }

// OccupiedPassQPS is OccupiedPass per second.
func (w Window) OccupiedPassQPS() float64 { return w.rate(w.OccupiedPass) }

// TotalQPS is Pass and Block together, per second.
func (w Window) TotalQPS() float64 { return w.rate(w.Total()) }

// MaxCompleteQPS is the rate of the bucket in which most calls ended: Sentinel's maxSuccessQps, but 0 when idle.
func (w Window) MaxCompleteQPS() float64 { return perSecond(w.MaxComplete, w.Length) }

func (w Window) rate(n int64) float64 { return perSecond(n, w.Span) }

// perSecond is 0 for the zero Window, which has no length.
func perSecond(n int64, in time.Duration) float64 {
	if in == 0 {
		return 0
	}
	return float64(n) / in.Seconds()
}

// zeros returns n counters, all 0.
func zeros(scratch []int64, n int) []int64 {
	if n > len(scratch) {
		return make([]int64, n)
	}
	clear(scratch[:n])
	return scratch[:n]
}

// windowPasses is the passes of the second window of a statistic that is not retired. It is what of openCounts [View.PassQPS] needs.
// Holds all stripes' locks.
func (s *Statistic) windowPasses() int64 {
	sum := s.history.windowPasses
	for st := range s.stripes {
		sum = saturate(sum, saturate(st.open.Pass, callsIn(st.entered.Load()-st.enteredAtStart)))
	}
	return sum
}

// addWindow adds the second window to w, and the completions of each bucket to done. Holds all stripes' locks.
func (s *Statistic) addWindow(w *Window, done []int64) {
	open, _ := s.openCounts()
	w.add(&open)
	done[0] = saturate(done[0], open.Complete)
	for at, b := range s.history.window.Window(s.start, w.Span) {
		w.add(b)
		back := int((s.start - at) / w.Length)
		done[back] = saturate(done[back], b.Complete)
	}
}

// addMinute adds the minute window to w, and the completions of each second to done. Holds all stripes' locks.
func (s *Statistic) addMinute(w *Window, done []int64) {
	open, _ := s.openCounts()
	start := secondStart(s.second)
	for _, b := range s.history.window.Window(s.start, s.start-start+s.first.shape.second.Length()) {
		open.add(b)
	}
	s.eachSecond(s.second+1-int64(len(done)), s.second, nil, func(i int64, rec record) {
		w.add(&rec.Counts)
		back := s.second - i
		done[back] = saturate(done[back], rec.Complete)
	})
	w.add(&open)
	done[0] = saturate(done[0], open.Complete)
}

// inFlight is how many calls are in flight.
func (s *Statistic) inFlight() int64 {
	s.lockStripes()
	defer s.unlockStripes()
	_, inFlight := s.openCounts()
	return inFlight
}

// lockAt takes all locks, at the reading now or later: what is read of sealed seconds needs mu, which guards where searches ended,
// and what is read of the open bucket the stripes' locks.
func (s *Statistic) lockAllAt(now leap.Reading) {
	s.mu.Lock()
	s.advance(now)
	s.lockStripes()
}

func (s *Statistic) unlockAll() {
	s.unlockStripes()
	s.mu.Unlock()
}

// openCounts sums the open bucket and the calls in flight over the stripes. Holds their locks.
func (s *Statistic) openCounts() (sum Counts, inFlight int64) {
	for st := range s.stripes {
		if st.end.Load() == closedMark {
			continue // a call may have entered that is about to find the statistic retired
		}
		entered := st.entered.Load()
		c := st.counts(entered)
		sum.add(&c)
		inFlight += int64(st.inFlightAt(entered))
	}
	sum.OccupiedPass = s.history.occupied
	return sum, inFlight
}

// attempts is how often a reading is tried again because the bucket turned. If buckets are so short, and leaves so many,
// that all attempts fail, the leaves are read in successive buckets.
const readAttempts = 5

// together calls read for each leaf, with all its locks held, when all are in the same bucket: that of the
// reading now, or a later one if another reader was ahead. Then it starts again, and calls again first. So no sum has a bucket of
// one leaf beside the next bucket of another, though no two leaves are ever locked at once.
func (v *View) readInOneBucket(now leap.Reading, again func(), read func(*Statistic)) {
	leaves := v.list()
	for range readAttempts {
		again()
		first, same := true, true
		var bucket time.Duration
		latest := now
		for _, s := range leaves {
			s.lockAllAt(now)
			if !s.retired() { // one that is has nothing in any window
				same = same && (first || s.start == bucket)
				first, bucket, latest = false, s.start, max(latest, s.end-1)
				read(s)
			}
			s.unlockAll()
		}
		if same {
			return
		}
		now = latest
	}
}

// PassQPS is the passes of the second window at the reading now, per second: [View.Window] for the one number that is asked
// for most. Like all readings, it takes the locks of each leaf for the time of a short sum.
func (v *View) PassQPS(now leap.Reading) float64 {
	var sum int64
	if leaves := v.list(); len(leaves) == 1 { // as together does, without calls of functions
		s := leaves[0]
		s.lockAllAt(now)
		if !s.retired() {
			sum = s.windowPasses()
		}
		s.unlockAll()
	} else {
		v.readInOneBucket(now, func() { sum = 0 }, func(s *Statistic) { sum = saturate(sum, s.windowPasses()) })
	}
	return float64(sum) // the window is a second long
}

// Window returns the second window at the reading now: the bucket that is open and the ones before it, together a
// second long. It takes the locks of each leaf for the time of a short sum.
func (v *View) Window(now leap.Reading) Window {
	return v.window(now, Window{Span: time.Second, Length: v.shape.second.Length()})
}

// Minute returns the minute window at the reading now: the second that is open and the ones before it, together
// Options.Minute long.
func (v *View) Minute(now leap.Reading) Window {
	return v.window(now, Window{Span: v.shape.opts.Minute, Length: time.Second})
}

// window fills an empty window at the reading now. A minute window is longer than a second.
func (v *View) window(now leap.Reading, empty Window) (w Window) {
	// The most completions in any bucket are known only when all leaves are added up. The open bucket is the first.
	var scratch [64]int64
	done := zeros(scratch[:], int(empty.Span/empty.Length))
	begin := func() {
		w = empty
		clear(done)
	}
	v.readInOneBucket(now, begin, func(s *Statistic) {
		if empty.Span > time.Second {
			s.addMinute(&w, done)
		} else {
			s.addWindow(&w, done)
		}
	})
	w.MaxComplete = slices.Max(done)
	return w
}

// InFlight is how many calls are in flight. Leaves are read one after the other.
func (v *View) InFlight() (sum int64) {
	for _, s := range v.list() {
		sum += s.inFlight()
	}
	return sum
}

// Waiting is how many calls have borrowed from buckets to come, at the reading now, and how many passes. To add the calls to
// [View.InFlight], read Waiting first: a call that passes in between is then in both, and not in neither.
func (v *View) Waiting(now leap.Reading) (calls, passes int64) {
	for _, s := range v.list() {
		c, p := s.waiting(now)
		calls, passes = calls+c, saturate(passes, p)
	}
	return calls, passes
}
