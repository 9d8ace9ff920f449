package collector

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// portionLock is a lock for long work that is done in portions. Between two of them, [portionLock.yield] runs those who wait:
// a mutex alone would only make them runnable, and where all processors are busy, they would find it taken again each time that they
// get one.
type portionLock struct {
	sync.Mutex
	waiting atomic.Int32
}

// Lock takes the lock.
func (l *portionLock) Lock() {
	if l.TryLock() {
		return
	}
	l.waiting.Add(1)
	l.Mutex.Lock()
	l.waiting.Add(-1)
}

// yield runs those who wait for the lock, which the caller does not hold.
func (l *portionLock) yield() {
	if l.waiting.Load() > 0 {
		runtime.Gosched()
	}
}
