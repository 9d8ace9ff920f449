package metriclog

import (
	"fmt"
	"strings"
	"time"
)

// Counts returns the metrics of a Writer about itself, by name.
func (w *Writer) Counts() map[string]float64 {
	all := map[string]float64{}
	for _, m := range w.metrics() {
		all[m.Name] = m.Value()
	}
	return all
}

// SecondsOf is a time in seconds with all its decimals, as a naive program writes it.
func SecondsOf(d time.Duration) string {
	return strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%d.%09d", d/time.Second, d%time.Second), "0"), ".")
}
