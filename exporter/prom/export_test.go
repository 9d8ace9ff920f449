package prom

import (
	"context"
	"fmt"
	"strings"
)

// Counts are the metrics of a page about itself, by name, and by name and label values.
func (s *Seconds) Counts() map[string]float64 {
	all := map[string]float64{}
	for _, m := range s.metrics() {
		m.Each(func(v float64, values ...string) {
			each := m.Name + fmt.Sprint(values)
			if before, ok := all[each]; ok && strings.HasSuffix(m.Name, "_total") { // as pages merge them
				v += before
			} else {
				v = max(v, before)
			}
			all[m.Name], all[each] = v, v
		})
	}
	return all
}

// OnStay has f called in place of the time for which an idle connection must stay so.
func (s *Seconds) OnStay(f func(context.Context) bool) { s.stay = f }
