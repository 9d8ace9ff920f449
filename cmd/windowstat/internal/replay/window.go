package replay

import (
	"cmp"
	"slices"
)

// window holds calls, by the second in which they began, until no earlier ones are expected: lines are out of order by
// seconds, since servers write them when calls end. It is a ring of seconds.
type window struct {
	seconds [][]call
	free    [][]call // room of seconds that were taken out
	from    int64    // Unix time of the first second that takes calls
	to      int64    // of the one after the last that has some
	held    int      // calls
}

// newWindow makes a window for lines that are late by at most tolerance seconds.
func newWindow(tolerance int64) *window {
	return &window{seconds: make([][]call, tolerance+1)}
}

const (
	nanos = int64(1e9)
	// mostHeld bounds the memory: beyond it, seconds are ended sooner.
	mostHeld = 4 << 20
	// crowd is from how many calls on those of a second are looked through for ones that are alike.
	crowd = 1024
)

func (w *window) slot(second int64) *[]call {
	return &w.seconds[floorMod(second, int64(len(w.seconds)))]
}

// floorMod is a modulo b, never negative.
func floorMod(a, b int64) int64 { return ((a % b) + b) % b }

// add takes a call that began in [from, from+len(seconds)).
func (w *window) add(c call) {
	second := floorDiv(c.at)
	slot := w.slot(second)
	if n := len(w.free); *slot == nil && n > 0 {
		*slot, w.free = w.free[n-1], w.free[:n-1]
	}
	*slot = append(*slot, c)
	w.held++
	w.to = max(w.to, second+1)
	if n := len(*slot); c.took == unknown && n >= crowd && n&(n-1) == 0 {
		w.held -= n
		*slot = together(*slot)
		w.held += len(*slot)
	}
}

// together makes calls that are alike one.
func together(calls []call) []call {
	slices.SortFunc(calls, func(a, b call) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.outcome, b.outcome))
	})
	to := calls[:0]
	for _, c := range calls {
		if n := len(to); n > 0 && to[n-1].name == c.name && to[n-1].outcome == c.outcome {
			to[n-1].n += c.n
			continue
		}
		to = append(to, c)
	}
	return to
}

// end takes the calls of all seconds before this one out, by second. Those of a second are f's for the call, and in
// order.
func (w *window) end(before int64, f func(second int64, calls []call) error) error {
	last := min(before, w.to)
	for ; w.from < last; w.from++ {
		slot := w.slot(w.from)
		if len(*slot) == 0 {
			continue
		}
		calls := *slot
		slices.SortStableFunc(calls, func(a, b call) int { return cmp.Compare(a.at, b.at) })
		w.held -= len(calls)
		*slot = nil
		err := f(w.from, calls)
		if cap(calls) <= crowd { // what one busy second needed, others do not
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

// floorDiv is the second of a time.
func floorDiv(at int64) int64 {
	second := at / nanos
	if at < second*nanos {
		second--
	}
	return second
}
