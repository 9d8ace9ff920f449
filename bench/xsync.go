package bench

import (
	"time"

	"github.com/puzpuzpuz/xsync/v4"
)

// newXsync uses striped counters of passes, completions and the sum of response times. The calls in flight are passes
// minus completions. It has no histogram and no window, and the three counters are not updated together.
func newXsync(names []string) (Recorder, error) {
	type counters struct{ pass, complete, rt *xsync.Counter }
	list := make([]counters, len(names))
	for i := range list {
		list[i] = counters{xsync.NewCounter(), xsync.NewCounter(), xsync.NewCounter()}
	}
	return Recorder{
		Call: func(i int) {
			c := &list[i]
			c.pass.Inc()
			start := Now()
			c.rt.Add(int64(Now() - start))
			c.complete.Inc()
		},
		Took: func(i int, rt time.Duration) {
			c := &list[i]
			c.pass.Inc()
			c.rt.Add(int64(rt))
			c.complete.Inc()
		},
	}, nil
}
