package metriclog

// Counts returns the metrics that a Writer publishes about itself, by name.
func (w *Writer) Counts() map[string]float64 {
	all := map[string]float64{}
	for _, m := range w.metrics() {
		all[m.Name] = m.Value()
	}
	return all
}
