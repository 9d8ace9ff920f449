package node

import (
	"encoding/binary"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// looker sees how many calls several leaves have in flight together, which no leaf knows: the most of each, added up, was at
// different moments, and is many times the truth where there are many leaves.
//
// Protocol. Whoever ends a call looks before it does, while the call is still in flight: what is in flight only grows until a
// call ends. But only one goroutine looks, once in a millisecond. A look first reads how many calls have entered each leaf, and
// then, with its locks in turn, how many have left it by then. So what it adds up was in flight, all at once, between the two;
// it never sees more than there was. It tells what has changed to the leaf's views. A view keeps the most that was seen in each
// second, until somebody has read the second; then it is closed.
//
// Cost. One atomic load and a comparison for each exit; for who looks, some 35 ns for each leaf. A look is at
// [portion] leaves, and the next one waits until it was at most a hundredth of the time.
//
// What remains. A look misses what comes and goes between two looks, and what leaves while it goes on: what was seen is too low
// where calls take less than a millisecond. Where they take longer, it is within some per cent. Beyond a portion of leaves what
// is added up was seen at different looks, and may be more than there was at once; the round takes longer, too.
type looker struct {
	next    atomic.Int64 // reading from which on somebody is to look
	leaves  atomic.Pointer[[]*Watched]
	forget  atomic.Bool // leaves have gone, with what they told: all tell anew
	looking sync.Mutex  // guards what follows, and the private fields of Watched and of views
	at      int         // the leaf that is looked at next
	known   []*Watched  // what was looked at last
}

// How often there are looks, and at how many leaves at once.
const (
	lookEvery = time.Millisecond
	lookRest  = 50 * time.Millisecond // at most, if a look took long because its goroutine lost its processor
	lookShare = 100                   // a look takes one part of so many of the time
	portion   = 512
)

// Watched is a leaf that is looked at, with the views that it is a part of.
type Watched struct {
	stat  *Statistic
	views atomic.Pointer[[]*View]

	// The looker's:
	last int64    // in flight at the last look
	told *[]*View // to whom that was added
	in   uint32   // calls that had entered, when a look began
}

// NewWatched makes a leaf to be looked at, for [Shape.Watch].
func NewWatched(s *Statistic, views []*View) *Watched {
	w := &Watched{stat: s}
	w.views.Store(&views)
	return w
}

// SetViews changes the views of a leaf that is looked at.
func (w *Watched) SetViews(views []*View) { w.views.Store(&views) }

// tell tells its views how many calls the leaf has in flight.
func (w *Watched) tell(n int64) {
	views := w.views.Load()
	if n == w.last && views == w.told {
		return
	}
	w.take()
	for _, v := range *views {
		v.inFlight += n
	}
	w.last, w.told = n, views
}

// take takes back what the leaf told.
func (w *Watched) take() {
	if w.told != nil {
		for _, v := range *w.told {
			v.inFlight -= w.last
		}
	}
	w.last, w.told = 0, nil
}

// Watch sets the leaves that are looked at, so that views of several leaves see how much was in flight; without it, they only
// know what is surely so. Gone tells that some are there no longer. The slice must not be changed, but may be appended to.
func (s *Shape) Watch(leaves []*Watched, gone bool) {
	l := &s.looker
	l.leaves.Store(&leaves)
	if gone {
		l.forget.Store(true)
	}
	if len(leaves) > 1 {
		l.next.CompareAndSwap(math.MaxInt64, math.MinInt64)
	}
}

// Look looks at what is in flight, if it is time to at the reading now. Call it where no lock is held, before a call ends;
// [Call.End] does.
func (s *Shape) Look(now leap.Reading) {
	if int64(now) >= s.looker.next.Load() {
		s.look(now)
	}
}

func (s *Shape) look(now leap.Reading) {
	l := &s.looker
	if !l.looking.TryLock() {
		return
	}
	defer l.looking.Unlock()
	if int64(now) < l.next.Load() {
		return
	}
	l.next.Store(math.MaxInt64) // nobody else tries meanwhile
	leaves := *l.leaves.Load()
	if l.forget.Swap(false) {
		l.at = 0
		for _, w := range l.known {
			w.take()
		}
	}
	l.known = leaves
	if l.at >= len(leaves) {
		l.at = 0
	}
	from, to := l.at, min(l.at+portion, len(leaves))
	l.at = to
	second := s.line.At(now).Index
	for _, w := range leaves[from:to] {
		w.in = w.stat.cameIn()
	}
	for _, w := range leaves[from:to] {
		w.tell(w.stat.stayed(w.in))
	}
	for _, w := range leaves[from:to] {
		if w.last != 0 {
			for _, v := range *w.told {
				v.see(second)
			}
		}
	}
	end := s.line.Now()
	l.next.Store(int64(end.Add(min(max(end.Sub(now)*(lookShare-1), lookEvery), lookRest))))
}

// cameIn is how many calls have entered; it wraps.
func (s *Statistic) cameIn() (n uint32) {
	for st := range s.stripes {
		n += uint32(st.entered.Load())
	}
	return n
}

// stayed is how many of the calls that have entered have not left. There are fewer than none if calls entered since, and left.
func (s *Statistic) stayed(in uint32) int64 {
	s.lockStripes()
	defer s.unlockStripes()
	for st := range s.stripes {
		in -= st.exited
	}
	return int64(int32(in<<(32-callBits)) >> (32 - callBits))
}

// seen is the most that looks saw in flight in each second.
type seen struct {
	second, most int64   // of the latest
	before       records // a varint for each second before the latest

	looked, high int64 // what the looker noted last, without a lock: in which second, and how many
}

// see notes what is in flight in a second, which the looker has added up.
func (v *View) see(second int64) {
	s := v.seen
	if v.inFlight <= 0 || s != nil && second == s.looked && v.inFlight <= s.high {
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if s == nil {
		s = new(seen)
		v.seen = s
	}
	s.looked, s.high = second, v.inFlight
	if second > v.closed {
		s.add(second, v.inFlight, v.shape.history)
	}
}

func (s *seen) add(second, n int64, history time.Duration) {
	switch {
	case second < s.second:
	case second == s.second:
		s.most = max(s.most, n)
	default:
		if s.most > 0 {
			s.before.add(s.second, binary.AppendUvarint(nil, uint64(s.most)))
			s.before.drop(second - int64(history/time.Second))
		}
		s.second, s.most = second, n
	}
}

// read sets most to what was seen in the seconds from from on.
func (s *seen) read(from int64, most []int64) {
	to := from + int64(len(most))
	if s.second >= from && s.second < to {
		most[s.second-from] = s.most
	}
	if s.before.last >= from {
		s.before.seek(from)
		s.before.each(from, to, func(i int64, b []byte) bool {
			n, _ := binary.Uvarint(b)
			most[i-from] = int64(n)
			return true
		})
	}
}

// atOnce is what the seconds of several leaves know about the most that they had in flight at once: not the sum of the most
// of each.
type atOnce struct {
	most  int64 // of one leaf, as far as that is sure
	began int64 // of all, when the second began
}

// bound sets InFlightMax, which is the sum of what each of several leaves had at most, to what was seen. It is at least what is
// surely so: what one leaf had, what all had when the second began and ended, and on average. And it is at most that sum.
func (m *MetricNode) bound(t atOnce, seen int64) {
	// Stamps that are late, and rounding and slewing, do not make an average of one call more than one.
	average := int64(math.Ceil(m.InFlightAvg() * 0.99))
	m.InFlightMax = min(m.InFlightMax, max(seen, t.most, t.began, m.InFlight, average))
}
