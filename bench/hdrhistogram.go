package bench

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// newHDR records the response times from 1 µs to a minute to one significant digit, which is about as fine as
// windowstat's native buckets. It needs a lock. It records completions only: no passes, no calls in flight, no windows.
func newHDR(names []string) (Recorder, error) {
	type locked struct {
		mu sync.Mutex
		h  *hdrhistogram.Histogram
	}
	list := make([]locked, len(names))
	for i := range list {
		list[i].h = hdrhistogram.New(1, time.Minute.Microseconds(), 1)
	}
	took := func(i int, rt time.Duration) {
		l := &list[i]
		l.mu.Lock()
		err := l.h.RecordValue(rt.Microseconds())
		l.mu.Unlock()
		if err != nil {
			panic(err)
		}
	}
	return Recorder{
		Call: func(i int) {
			start := Now()
			took(i, Now()-start)
		},
		Took: took,
	}, nil
}
