package collector

// OriginsOfName returns the number of origins that have a meter in the limiter of an overflowing name.
func OriginsOfName(c *Collector, name string) int {
	t := c.overflowLimiters
	t.mu.Lock()
	defer t.mu.Unlock()
	m := t.byName[name]
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.origins)
}
