package bench_test

import (
	"sync"
	"time"

	"github.com/windowstat/windowstat/bench"
)

// crew is a set of long-lived goroutines, each with its own stack.
type crew struct {
	work []chan func(i int)
	done sync.WaitGroup
}

func newCrew(n int) *crew {
	c := new(crew)
	for i := range n {
		work := make(chan func(int))
		c.work = append(c.work, work)
		go func() {
			for f := range work {
				f(i)
				c.done.Done()
			}
		}()
	}
	return c
}

// do calls f in all goroutines, and waits until all calls return.
func (c *crew) do(f func(i int)) {
	c.done.Add(len(c.work))
	for _, work := range c.work {
		work <- f
	}
	c.done.Wait()
}

// end stops the goroutines.
func (c *crew) end() {
	for _, work := range c.work {
		close(work)
	}
}

// callFor calls until the end, and returns the number of calls.
func callFor(end time.Duration, call func(i int)) (calls int) {
	const often = 64
	for bench.Now() < end {
		for range often {
			call(0)
		}
		calls += often
	}
	return calls
}
