package prom

import "fmt"

// Counts are the metrics of a page about itself, by name, and by name and label values.
func (s *Seconds) Counts() map[string]float64 {
	all := map[string]float64{}
	for _, m := range s.metrics() {
		m.Each(func(v float64, values ...string) {
			all[m.Name], all[m.Name+fmt.Sprint(values)] = v, v
		})
	}
	return all
}
