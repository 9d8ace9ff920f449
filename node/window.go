package node

import (
	"slices"
	"time"

	"github.com/windowstat/windowstat/leap"
)

// Window holds the counts of the events in a window of time that ends with the open bucket. When the next bucket opens,
// the window moves forward by one bucket. The last bucket of the window is not complete. Values can be copied and
// compared.
type Window struct {
	Counts
	// Span is the length of the window, including the whole open bucket.
	Span time.Duration
	// Length is the length of a bucket. The buckets of the minute window are seconds.
	Length time.Duration
	// MaxComplete is the highest number of completions in a bucket.
	MaxComplete int64
}

// PassQPS returns Pass per second. It returns 0 for the zero Window, whose Span is 0.
func (w Window) PassQPS() float64 {
	if w.Span == 0 {
		return 0
	}
	return float64(w.Pass) / w.Span.Seconds()
}

// zeros returns a slice of n zeros. If scratch is long enough, the slice uses the memory of scratch.
func zeros(scratch []int64, n int) []int64 {
	if n > len(scratch) {
		return make([]int64, n)
	}
	clear(scratch[:n])
	return scratch[:n]
}

// windowPasses returns the passes in the second window of s, for [View.PassQPS]. s must not be retired, and all stripe
// locks must be held.
func (s *Statistic) windowPasses() int64 {
	sum := s.history.windowPasses
	for st := range s.stripes {
		sum = saturate(sum, saturate(st.open.Pass, callsIn(st.entered.Load()-st.enteredAtStart)))
	}
	return sum
}

// addWindow adds the counts in the second window of s to w. It also adds the completions of each bucket to an element
// of done. The first element of done is for the open bucket, the next element for the bucket before it, and so on. The
// caller must have set w.Span and w.Length, and all locks must be held.
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

// addMinute adds the counts in the minute window of s to w. It also adds the completions of each second to an element
// of done. The first element of done is for the open second, the next element for the second before it, and so on. The
// length of done is the number of seconds in the window. All locks must be held.
func (s *Statistic) addMinute(w *Window, done []int64) {
	open, _ := s.openCounts()
	start := secondStart(s.second)
	for _, b := range s.history.window.Window(s.start, s.start-start+s.first.config.second.Length()) {
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

// readAttempts is the largest number of attempts of readInOneBucket. With very short buckets and many leaves, all
// attempts may fail. The caller then gets the sums of the last attempt, which mix the counts of successive buckets.
const readAttempts = 5

// readInOneBucket calls the function read for one leaf after the other, so that each leaf has the same open bucket when
// it is read. This is the bucket of the reading now, or a later bucket if another goroutine has turned a leaf. During a
// call of read, readInOneBucket holds all locks of this leaf, and no locks of other leaves.
//
// If another goroutine turns a leaf in between, two leaves may be read with different open buckets. readInOneBucket
// then makes another attempt, and first turns each leaf to the latest of these buckets. It calls the function reset
// before the first leaf of each attempt. A sum over the leaves therefore never mixes a bucket of one leaf with the next
// bucket of another leaf, unless all attempts fail. Retired leaves are left out.
func (v *View) readInOneBucket(now leap.Reading, reset func(), read func(*Statistic)) {
	leaves := v.list()
	for range readAttempts {
		reset()
		first, same := true, true
		var bucket time.Duration
		latest := now
		for _, s := range leaves {
			s.lockAllAt(now)
			// Package collector retires a leaf only if the leaf was idle for longer than a minute, so the windows of a
			// retired leaf are empty.
			if !s.retired() {
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

// PassQPS returns the passes per second in the second window at the reading now. Callers need this number most often,
// so it has a separate method, which costs less than [View.Window]. PassQPS holds the locks of each leaf while it adds
// up a few counts.
func (v *View) PassQPS(now leap.Reading) float64 {
	var sum int64
	if leaves := v.list(); len(leaves) == 1 { // readInOneBucket for a single leaf, inlined by hand
		s := leaves[0]
		s.lockAllAt(now)
		if !s.retired() {
			sum = s.windowPasses()
		}
		s.unlockAll()
	} else {
		v.readInOneBucket(now, func() { sum = 0 }, func(s *Statistic) { sum = saturate(sum, s.windowPasses()) })
	}
	return float64(sum) // the window is one second long, so its passes are the rate per second
}

// Window returns the second window at the reading now: the open bucket and the buckets before it, together one second
// long. Window holds the locks of each leaf while it adds up the counts of the buckets.
func (v *View) Window(now leap.Reading) Window {
	return v.window(now, Window{Span: time.Second, Length: v.config.second.Length()})
}

// Minute returns the minute window at the reading now: the open second and the 59 seconds before it.
func (v *View) Minute(now leap.Reading) Window {
	return v.window(now, Window{Span: Minute, Length: time.Second})
}

// window returns the second window or the minute window at the reading now. The parameter empty is the result without
// its counts. If its Span is longer than a second, window returns the minute window, otherwise the second window.
func (v *View) window(now leap.Reading, empty Window) (w Window) {
	// MaxComplete needs the completions of each bucket, summed over all leaves. done[0] belongs to the open bucket. A
	// bucket of the minute window is a second.
	var scratch [64]int64
	done := zeros(scratch[:], int(empty.Span/empty.Length))
	reset := func() {
		w = empty
		clear(done)
	}
	v.readInOneBucket(now, reset, func(s *Statistic) {
		if empty.Span > time.Second {
			s.addMinute(&w, done)
		} else {
			s.addWindow(&w, done)
		}
	})
	w.MaxComplete = slices.Max(done)
	return w
}

// InFlight returns the current number of calls in flight. It reads the leaves one after the other.
func (v *View) InFlight() (sum int64) {
	for _, s := range v.list() {
		sum += s.inFlight()
	}
	return sum
}

// Waiting returns the number of calls that wait for later buckets at the reading now, and the sum of the passes that
// they have borrowed. To add these calls to the result of [View.InFlight], call Waiting first. If a waiting call passes
// between the two method calls, it is then counted twice. In the other order, it would not be counted at all.
func (v *View) Waiting(now leap.Reading) (calls, passes int64) {
	for _, s := range v.list() {
		c, p := s.waiting(now)
		calls, passes = calls+c, saturate(passes, p)
	}
	return calls, passes
}
