package bench

import (
	"sync"
	"time"
)

// Cell holds the counts of the simple windows for a period of time.
type Cell struct {
	Pass, Complete int64
	RTSum          time.Duration
}

func (c *Cell) add(o Cell) {
	c.Pass += o.Pass
	c.Complete += o.Complete
	c.RTSum += o.RTSum
}

// FixedWindow counts calls in one window that is reset at its end, as the simplest rate limiters do. It keeps the
// previous window, so that a complete window can be read. One lock guards everything.
//
// Errors: it reads a burst across the boundary as two bursts of half the size, and reads zero just after the boundary.
type FixedWindow struct {
	mu       sync.Mutex
	length   time.Duration
	index    int64
	open     Cell
	before   Cell // of the window before index, or of an older window
	previous int64
	inFlight int64
}

// NewFixedWindow returns a window of one second.
func NewFixedWindow() *FixedWindow {
	return &FixedWindow{length: time.Second, previous: -1}
}

func (w *FixedWindow) turn(now time.Duration) {
	if index := int64(now / w.length); index > w.index {
		w.before, w.previous = w.open, w.index
		w.index, w.open = index, Cell{}
	}
}

// Enter counts a call that begins at the reading now.
func (w *FixedWindow) Enter(now time.Duration) {
	w.mu.Lock()
	w.turn(now)
	w.open.Pass++
	w.inFlight++
	w.mu.Unlock()
}

// Exit counts the end of a call at the reading now.
func (w *FixedWindow) Exit(now, rt time.Duration) {
	w.mu.Lock()
	w.turn(now)
	w.open.add(Cell{Complete: 1, RTSum: rt})
	w.inFlight--
	w.mu.Unlock()
}

// Sum returns the counts in the window of the reading now.
func (w *FixedWindow) Sum(now time.Duration) Cell {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turn(now)
	return w.open
}

// Each passes the stored windows to take, by index, including the open window.
func (w *FixedWindow) Each(take func(index int64, c Cell)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.previous >= 0 {
		take(w.previous, w.before)
	}
	take(w.index, w.open)
}

func newFixedWindows(names []string) (Recorder, error) {
	list := make([]*FixedWindow, len(names))
	for i := range list {
		list[i] = NewFixedWindow()
	}
	return Recorder{
		Call: func(i int) {
			start := Now()
			list[i].Enter(start)
			end := Now()
			list[i].Exit(end, end-start)
		},
		Took: func(i int, rt time.Duration) {
			list[i].Enter(0)
			list[i].Exit(rt, rt)
		},
	}, nil
}
