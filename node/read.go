package node

import (
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
func (w Window) MaxCompleteQPS() float64 {
	if w.Length == 0 {
		return 0
	}
	return float64(w.MaxComplete) / w.Length.Seconds()
}

func (w Window) rate(n int64) float64 {
	if w.Span == 0 {
		return 0
	}
	return float64(n) / w.Span.Seconds()
}

// window returns an empty second window, and a count of completions for each of its buckets, the open one first: the
// most in any of them is known only when everything is added up. They take room if it is enough.
func (s *Shape) window(room []int64) (Window, []int64) {
	w := Window{Span: s.span, Length: s.second.Length()}
	return w, counters(room, int(s.span/w.Length))
}

// minuteWindow is window for the minute window.
func (s *Shape) minuteWindow(room []int64) (Window, []int64) {
	return Window{Span: s.horizon, Length: time.Second}, counters(room, int(s.horizon/time.Second))
}

// counters returns n counters, all 0.
func counters(room []int64, n int) []int64 {
	if n > len(room) {
		return make([]int64, n)
	}
	clear(room[:n])
	return room[:n]
}

// windowPasses is the passes of the second window. Holds all stripes' locks.
func (s *Statistic) windowPasses() (sum int64) {
	for st := range s.stripes {
		passes, _ := st.passes()
		sum = saturate(sum, passes)
	}
	if s.rings != nil {
		sum = saturate(sum, s.rings.passes)
	}
	return sum
}

// addWindow adds the second window to w, and the completions of each bucket to done. Holds all stripes' locks.
func (s *Statistic) addWindow(w *Window, done []int64) {
	open, _ := s.openCounts()
	w.add(&open)
	done[0] = saturate(done[0], open.Complete)
	if s.rings == nil {
		return
	}
	for at, b := range s.rings.window.Window(s.at, w.Span) {
		w.add(b)
		back := int((s.at - at) / w.Length)
		done[back] = saturate(done[back], b.Complete)
	}
}

// addMinute adds the minute window to w, and the completions of each second to done. Holds all stripes' locks.
func (s *Statistic) addMinute(w *Window, done []int64) {
	open, _ := s.openCounts()
	start := secondAt(s.index)
	if s.rings != nil {
		for _, b := range s.rings.window.Window(s.at, s.at-start+s.first.shape.second.Length()) {
			open.add(b)
		}
		s.rings.minute.each(s.index+1-int64(len(done)), s.index, func(i int64, b []byte) bool {
			var rec sealed
			rec.unpack(b, s.first.shape.perSec, nil)
			w.add(&rec.Counts)
			back := s.index - i
			done[back] = saturate(done[back], rec.Complete)
			return true
		})
	}
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

// Snapshot is a view at one moment. It is a plain value, and comparable.
type Snapshot struct {
	// Total is everything since the view began, up to the moment.
	Total Counts
	// InFlight is how many calls were in flight at the moment.
	InFlight int64
	// InFlightSeconds is the time that all calls together were in flight since the view began, up to the moment, in seconds.
	// Its growth, divided by the time in which it grew, is how many were in flight on average. It never falls.
	InFlightSeconds float64
	// Last is the last complete second, which no open bucket blurs.
	Last MetricNode
	// Peak is the highest sliding second of the minute before the present second: of its PassPeaks.
	Peak int64
}

// addTotal adds all counts up to now to the snapshot, to the cells of h and to the codes, and what was spent up to now to
// spent. Holds mu.
func (s *Statistic) addTotal(snap *Snapshot, spent *callTime, h *Histogram, by *Codes) {
	s.lockStripes()
	defer s.unlockStripes()
	spent.add(s.spentNow())
	open, inFlight := s.openCounts()
	if s.rings != nil {
		open.add(&s.rings.total)
	}
	snap.Total.add(&open)
	snap.InFlight += inFlight
	if h != nil {
		for st := range s.stripes {
			if st.rt != nil {
				st.rt.addTo(h.cells)
			}
		}
		if s.rings != nil {
			s.rings.rt.addTo(h.cells)
		}
	}
	if by != nil {
		s.addCodes(&by.list)
	}
}

// addCodes adds the codes of all time. Holds all stripes' locks.
func (s *Statistic) addCodes(to *codes) {
	for st := range s.stripes {
		if st.rt != nil {
			to.addAll(st.rt.codes)
		}
	}
}

// lockAt locks all stripes, at the reading now or later.
func (s *Statistic) lockAt(now leap.Reading) {
	s.first.mu.Lock()
	if now >= s.first.ends() {
		s.first.turn(now)
	}
	for st := range s.stripes {
		if st != &s.first {
			st.mu.Lock()
		}
	}
}

// openCounts sums the open bucket and the calls in flight over the stripes. Holds their locks.
func (s *Statistic) openCounts() (sum Counts, inFlight int64) {
	for st := range s.stripes {
		if st.end.Load() == closed {
			continue // a call may have entered that is about to find the statistic retired
		}
		entered := st.entered.Load()
		c := st.counts(entered)
		sum.add(&c)
		inFlight += int64(st.inFlightAt(entered))
	}
	if s.rings != nil {
		sum.OccupiedPass = s.rings.occupied
	}
	return sum, inFlight
}
