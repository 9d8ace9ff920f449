package bench

import (
	"sync"
	"time"
)

// SubWindowList keeps the last seconds as a linked list of sub-windows. It appends a sub-window when its time begins,
// and drops old sub-windows from the other end. One lock guards everything.
//
// Errors and costs: each turn allocates, for every resource. Like all rings of sub-windows, it resolves a burst only to
// the length of a sub-window, and reads too low just after a sub-window began.
type SubWindowList struct {
	mu       sync.Mutex
	length   time.Duration
	n        int64
	oldest   *subWindow
	newest   *subWindow
	inFlight int64
}

type subWindow struct {
	index int64
	Cell
	next *subWindow
}

// NewSubWindowList returns a list of up to 20 sub-windows of half a second. A reading covers the last second.
func NewSubWindowList() *SubWindowList { return NewSubWindowListOf(20, 500*time.Millisecond) }

// NewSubWindowListOf returns a list of up to n sub-windows of the given length, which must divide one second.
func NewSubWindowListOf(n int, length time.Duration) *SubWindowList {
	return &SubWindowList{length: length, n: int64(n)}
}

// at returns the sub-window of now, or the newest sub-window if it is later than now. mu must be held.
func (l *SubWindowList) at(now time.Duration) *subWindow {
	index := int64(now / l.length)
	switch {
	case l.newest == nil:
		l.newest = &subWindow{index: index}
		l.oldest = l.newest
	case l.newest.index < index:
		l.newest.next = &subWindow{index: index}
		l.newest = l.newest.next
		for l.oldest.index <= index-l.n {
			l.oldest = l.oldest.next
		}
	}
	return l.newest
}

// Enter counts a call that begins at the reading now.
func (l *SubWindowList) Enter(now time.Duration) {
	l.mu.Lock()
	l.at(now).Pass++
	l.inFlight++
	l.mu.Unlock()
}

// Exit counts the end of a call at the reading now.
func (l *SubWindowList) Exit(now, rt time.Duration) {
	l.mu.Lock()
	l.at(now).add(Cell{Complete: 1, RTSum: rt})
	l.inFlight--
	l.mu.Unlock()
}

// Sum returns the counts of the last second before the end of now's sub-window.
func (l *SubWindowList) Sum(now time.Duration) Cell {
	last := int64(now / l.length)
	first := last - int64(time.Second/l.length)
	l.mu.Lock()
	defer l.mu.Unlock()
	var sum Cell
	for s := l.oldest; s != nil; s = s.next {
		if s.index > first && s.index <= last {
			sum.add(s.Cell)
		}
	}
	return sum
}

// Each passes the stored sub-windows to take, by index, oldest first.
func (l *SubWindowList) Each(take func(index int64, c Cell)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := l.oldest; s != nil; s = s.next {
		take(s.index, s.Cell)
	}
}

func newSubWindowLists(names []string) (Recorder, error) {
	list := make([]*SubWindowList, len(names))
	for i := range list {
		list[i] = NewSubWindowList()
	}
	return Recorder{
		Call: func(i int) {
			start := Now()
			list[i].Enter(start)
			end := Now()
			list[i].Exit(end, end-start)
		},
		Took: func(i int, rt time.Duration) {
			now := list[i].later()
			list[i].Enter(now)
			list[i].Exit(now, rt)
		},
	}, nil
}

// later returns the start of the next sub-window. To fill a list with a few calls, each call falls into a separate
// sub-window.
func (l *SubWindowList) later() time.Duration {
	if l.newest == nil {
		return 0
	}
	return time.Duration(l.newest.index+1) * l.length
}
