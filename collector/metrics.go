package collector

import (
	"slices"
	"time"
)

// Metric is a number that windowstat keeps about itself. One whose name ends in _total is a counter, others are gauges.
// One of Value and Read is set.
type Metric struct {
	// Name is the name without namespace.
	Name string
	// Unit is the base unit that the name ends with, before _total; empty for plain numbers.
	Unit string
	// Help says what is counted, in one sentence.
	Help string
	// Labels are the label names, in order.
	Labels []string
	// Value reads a metric without labels. It may be called from several goroutines.
	Value func() float64
	// Read yields the series of a metric with labels: each value with the labels' values, in order. It may be called from
	// several goroutines, and yields nothing while there is nothing to tell.
	Read func(yield func(v float64, labels ...string))
	// Began is when a counter began with zero. [Collector.Publish] sets it if it is zero.
	Began time.Time
}

// Each yields the present values with their label values.
func (m *Metric) Each(yield func(v float64, labels ...string)) {
	if m.Value != nil {
		yield(m.Value())
		return
	}
	m.Read(yield)
}

// publication is what one call of Publish added.
type publication struct{ metrics []Metric }

// Publish adds metrics to those that every page of the Collector shows, also one that was made before. Each part of
// windowstat that is made on a Collector publishes its own, so a part that is not there has none. The returned function
// takes them away again, for a part that has ended; it may be called several times.
//
// Metrics that have a name and label values in common are shown as one: counters are added; of gauges the highest is shown,
// and of those whose name ends in _timestamp_seconds the lowest, so that the part that is behind is seen. It must have a value
// to be seen: a time that has not come yet is 0. A pedantic prometheus.Registry refuses metrics that are published after the page
// was registered.
//
// A nil Collector publishes nothing.
func (c *Collector) Publish(all ...Metric) (withdraw func()) {
	if c == nil {
		return func() {}
	}
	p := &publication{slices.Clone(all)}
	for i := range p.metrics {
		if m := &p.metrics[i]; m.Began.IsZero() {
			m.Began = c.now()
		}
	}
	c.publishing.Lock()
	defer c.publishing.Unlock()
	c.published = append(c.published, p)
	return func() {
		c.publishing.Lock()
		defer c.publishing.Unlock()
		c.published = slices.DeleteFunc(slices.Clone(c.published), func(x *publication) bool { return x == p })
	}
}

// Metrics are those of the Collector itself, which tell what [Collector.Health] does, and then those that were published, in
// the order of publication. Of a nil Collector they are its own, for documents.
func (c *Collector) Metrics() []Metric {
	all := c.own()
	if c == nil {
		return all
	}
	c.publishing.Lock()
	defer c.publishing.Unlock()
	for _, p := range c.published {
		all = append(all, p.metrics...)
	}
	return all
}

// own are the metrics of the Collector itself.
func (c *Collector) own() (all []Metric) {
	var began time.Time
	if c != nil {
		began = c.began
	}
	metric := func(name, unit, help string, read func(Health) float64) {
		all = append(all, Metric{Name: name, Unit: unit, Help: help, Value: func() float64 { return read(c.Health()) }, Began: began})
	}
	metric("resources", "", "Resources that are kept apart, _other included.",
		func(h Health) float64 { return float64(h.Resources) })
	metric("overflow_events_total", "", "Calls counted for the resource _other, because there were too many names.",
		func(h Health) float64 { return float64(h.Overflow) })
	metric("unearned_events_total", "", "Calls counted for another resource such as unmatched, because their name had not earned one: the service never answered it with success.",
		func(h Health) float64 { return float64(h.Unearned) })
	metric("leaves", "", "Combinations of resource, origin and entrance that are kept apart; they take the memory.",
		func(h Health) float64 { return float64(h.Leaves) })
	metric("entrances", "", "Entrances that are kept apart.",
		func(h Health) float64 { return float64(h.Entrances) })
	metric("origin_overflow_events_total", "", "Calls counted for the origin _other, because their resource had too many origins.",
		func(h Health) float64 { return float64(h.OriginOverflow) })
	metric("entrance_overflow_events_total", "", "Calls counted for the entrance _other, because there were too many entrances.",
		func(h Health) float64 { return float64(h.EntranceOverflow) })
	metric("leaf_overflow_events_total", "", "Calls counted for the origin and entrance _other, because there were too many combinations.",
		func(h Health) float64 { return float64(h.LeafOverflow) })
	metric("tree_overflow_events_total", "", "Calls whose place in the call tree is not shown, because it is too deep or the tree is full.",
		func(h Health) float64 { return float64(h.TreeOverflow) })
	metric("retired_resources_total", "", "Resources that were retired because they were idle, those that made room for others included.",
		func(h Health) float64 { return float64(h.Retired) })
	metric("limits", "", "Limits in force.",
		func(h Health) float64 { return float64(h.Limits) })
	metric("clock_steps_total", "", "Wall clock steps of a second or more.",
		func(h Health) float64 { return float64(h.Clock.Steps) })
	metric("clock_offset_seconds", "seconds", "Offset of the wall clock from the timeline; corrected by slewing seconds by at most 1%.",
		func(h Health) float64 { return h.Clock.Offset.Seconds() })
	metric("clock_repeated_seconds_total", "seconds", "Seconds that the wall clock named a second time after it was set back; counted in totals, not handed out.",
		func(h Health) float64 { return float64(h.Clock.Repeated) })
	return all
}
