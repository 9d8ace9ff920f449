package prom

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Counts returns the page's metrics about itself, by name, and by name and label values.
func (s *Seconds) Counts() map[string]float64 {
	all := map[string]float64{}
	for _, m := range s.metrics() {
		m.Each(func(v float64, values ...string) {
			each := m.Name + fmt.Sprint(values)
			if before, ok := all[each]; ok && strings.HasSuffix(m.Name, "_total") { // sum the counters, as pages do
				v += before
			} else {
				v = max(v, before)
			}
			all[m.Name], all[each] = v, v
		})
	}
	return all
}

// OnAwait replaces the wait for an idle connection by f. f gets a channel that is closed when the state of the
// connection changes.
func (s *Seconds) OnAwait(f func(ctx context.Context, changed <-chan struct{}) bool) {
	s.await = func(ctx context.Context, _ time.Duration, changed <-chan struct{}) bool { return f(ctx, changed) }
}
