package replay

import (
	"cmp"
	"slices"
)

// window is a ring of seconds. It holds calls by the second in which they began, until no earlier ones are expected: lines
// are out of order by seconds, since servers write them when calls end.
type window struct {
	seconds [][]call
	free    [][]call // slices of seconds that have ended
	from    int64    // Unix time of the first second that accepts calls
	to      int64    // of the second after the last one with calls
	held    int      // calls
	order   []place
	sorted  []call // of the second that ends
}

// newWindow makes a window for lines that are at most tolerance seconds out of order.
func newWindow(tolerance int64) *window {
	return &window{seconds: make([][]call, tolerance+1)}
}

const (
	nanos = int64(1e9)
	// maxHeld bounds the memory: beyond it, the oldest seconds are evicted.
	maxHeld = 4 << 20
	// crowd is the number of calls in a second from which equal ones are merged.
	crowd = 1024
)

func (w *window) slot(second int64) *[]call {
	return &w.seconds[floorMod(second, int64(len(w.seconds)))]
}

// floorMod is a modulo b, never negative.
func floorMod(a, b int64) int64 { return ((a % b) + b) % b }

// add adds a call that began in [from, from+len(seconds)).
func (w *window) add(c call) {
	second := floorDiv(c.at)
	slot := w.slot(second)
	if n := len(w.free); *slot == nil && n > 0 {
		*slot, w.free = w.free[n-1], w.free[:n-1]
	}
	*slot = append(*slot, c)
	w.held++
	w.to = max(w.to, second+1)
	if n := len(*slot); c.duration == unknown && n >= crowd && n&(n-1) == 0 {
		w.held -= n
		*slot = merge(*slot)
		w.held += len(*slot)
	}
}

// merge merges equal calls.
func merge(calls []call) []call {
	slices.SortFunc(calls, func(a, b call) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.status, b.status))
	})
	to := calls[:0]
	for _, c := range calls {
		if n := len(to); n > 0 && to[n-1].name == c.name && to[n-1].status == c.status {
			to[n-1].n += c.n
			continue
		}
		to = append(to, c)
	}
	return to
}

// end removes the seconds before the given one and calls f for each that has calls, in order. The slice is only valid during
// the call.
func (w *window) end(before int64, f func(second int64, calls []call) error) error {
	last := min(before, w.to)
	for ; w.from < last; w.from++ {
		slot := w.slot(w.from)
		if len(*slot) == 0 {
			continue
		}
		calls := *slot
		w.held -= len(calls)
		*slot = nil
		err := f(w.from, w.inOrder(calls))
		if cap(calls) <= crowd { // a busy second needs more than others
			w.free = append(w.free, calls[:0])
		}
		if err != nil {
			w.from++
			return err
		}
	}
	w.from = max(w.from, before)
	return nil
}

// inOrder sorts calls by the times when they began, and those of one time as they came. The slice is valid until the next call.
func (w *window) inOrder(calls []call) []call {
	byTime := func(a, b call) int { return cmp.Compare(a.at, b.at) }
	if slices.IsSortedFunc(calls, byTime) {
		return calls
	}
	w.order, w.sorted = w.order[:0], w.sorted[:0]
	for i := range calls {
		w.order = append(w.order, place{calls[i].at, i})
	}
	slices.SortFunc(w.order, func(a, b place) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.index, b.index)) })
	for _, p := range w.order {
		w.sorted = append(w.sorted, calls[p.index])
	}
	return w.sorted
}

// place is where a call is among those of its second: much less to move than the call.
type place struct {
	at    int64
	index int
}

// floorDiv returns the second of a time.
func floorDiv(at int64) int64 {
	second := at / nanos
	if at < second*nanos {
		second--
	}
	return second
}

// call is what counts of a line of an access log. Equal calls may be merged into one.
type call struct {
	at       int64 // when it began, Unix nanoseconds
	clipped  int64 // how much earlier it began, in a second that had ended
	duration int64 // nanoseconds; unknown if the log does not say
	name     int32 // of its resource, an index into the names
	n        int32 // how many calls this stands for
	outcome
	status int16
	passed bool // the previous process counted its beginning
}

// unknown is the duration of a call whose log does not say.
const unknown = -1

// outcome is what became of a call, as its status tells.
type outcome uint8

const (
	good outcome = iota
	failed
	blocked
)

// spread distributes times of whole seconds evenly over their second, and the same way when a log is read again. It
// remembers the last few seconds.
type spread [16]struct {
	second int64
	at     float64 // the last offset, in [0, 1)
}

// golden spreads any number of points evenly over [0, 1) when it is added to each to get the next.
const golden = 0.6180339887498949

// next returns the offset of the next time in a second, in nanoseconds.
func (s *spread) next(second int64) int64 {
	x := &s[floorMod(second, int64(len(s)))]
	if x.second != second {
		x.second, x.at = second, 0
	}
	if x.at += golden; x.at >= 1 {
		x.at--
	}
	return int64(x.at * float64(nanos))
}
