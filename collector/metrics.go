package collector

import (
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Metric is a number that windowstat keeps about itself. One whose name ends in _total is a counter, others are gauges.
// One of Value and Read is set.
type Metric struct {
	// Name is the name without namespace: letters, digits and _, no digit in front.
	Name string
	// Unit is the base unit that the name ends with, before _total; empty for plain numbers.
	Unit string
	// Help says what is counted, in one sentence.
	Help string
	// Labels are the label names, in order. They consist of what a name does, and do not begin with __.
	Labels []string
	// Value reads a metric without labels. It may be called from several goroutines. While it panics, the metric is absent.
	Value func() float64
	// Read yields the series of a metric with labels: each value with the labels' values, in order. It may be called from
	// several goroutines, and yields nothing while there is nothing to tell. A series with another number of label values is
	// absent; what is no UTF-8 in them is replaced. If it panics, what it has yielded before is there.
	Read func(yield func(v float64, labels ...string))
	// Began is when a counter began with zero. [Collector.Publish] sets it if it is zero.
	Began time.Time
}

// Each yields the present values with their label values.
func (m *Metric) Each(yield func(v float64, labels ...string)) {
	type series struct {
		v      float64
		labels []string
	}
	var all []series
	func() {
		defer func() { _ = recover() }() // the reader of a page cannot help it
		if m.Value != nil {
			all = append(all, series{v: m.Value()})
			return
		}
		m.Read(func(v float64, labels ...string) {
			if len(labels) != len(m.Labels) {
				return
			}
			labels = slices.Clone(labels)
			for i := range labels {
				labels[i] = strings.ToValidUTF8(labels[i], "\uFFFD")
			}
			all = append(all, series{v, labels})
		})
	}()
	for _, x := range all {
		yield(x.v, x.labels...)
	}
}

func validName(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_', i > 0 && c >= '0' && c <= '9':
		default:
			return false
		}
	}
	return name != ""
}

// check returns what is wrong with a metric.
func (m *Metric) check() error {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("collector: metric %q: "+format, append([]any{m.Name}, args...)...)
	}
	var errs []error
	if !validName(m.Name) {
		errs = append(errs, wrong("a name consists of letters, digits and _, with no digit in front"))
	}
	if !utf8.ValidString(m.Help) {
		errs = append(errs, wrong("its Help is not UTF-8"))
	}
	for i, l := range m.Labels {
		if !validName(l) || strings.HasPrefix(l, "__") {
			errs = append(errs, wrong("label %q: a label consists of letters, digits and _, with no digit and no __ in front", l))
		}
		if slices.Contains(m.Labels[:i], l) {
			errs = append(errs, wrong("it has the label %q twice", l))
		}
	}
	switch {
	case (m.Value == nil) == (m.Read == nil):
		errs = append(errs, wrong("one of Value and Read is needed"))
	case m.Value != nil && len(m.Labels) > 0:
		errs = append(errs, wrong("one with labels needs Read"))
	}
	return errors.Join(errs...)
}

// conflict returns why two metrics cannot be on one page.
func (m *Metric) conflict(o *Metric) error {
	base := func(m *Metric) string { return strings.TrimSuffix(m.Name, "_total") } // as in OpenMetrics
	switch {
	case base(m) != base(o):
		return nil
	case m.Name != o.Name:
		return fmt.Errorf("collector: metric %q: there is %q, which is the same in OpenMetrics", m.Name, o.Name)
	case !slices.Equal(m.Labels, o.Labels):
		return fmt.Errorf("collector: metric %q: there is one with the labels %q; it has %q", m.Name, o.Labels, m.Labels)
	}
	return nil
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
// Publish panics for what is no metric, as [Metric] documents, and for one whose name the Collector has already for another: its
// own metrics, and published ones that have other labels, or differ in _total alone. Names that pages have for
// resources, such as pass_total, are not known here: pages leave such a metric out.
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
	c.publishedMu.Lock()
	defer c.publishedMu.Unlock()
	if err := c.checkMetrics(p.metrics); err != nil {
		panic(err)
	}
	c.published = append(c.published, p)
	return func() {
		c.publishedMu.Lock()
		defer c.publishedMu.Unlock()
		c.published = slices.DeleteFunc(slices.Clone(c.published), func(x *publication) bool { return x == p })
	}
}

// checkMetrics returns what is wrong with metrics that are to be published. Holds publishing.
func (c *Collector) checkMetrics(all []Metric) error {
	var errs []error
	own := c.own()
	for i := range all {
		m := &all[i]
		errs = append(errs, m.check())
		for k := range own {
			if strings.TrimSuffix(m.Name, "_total") == strings.TrimSuffix(own[k].Name, "_total") {
				errs = append(errs, fmt.Errorf("collector: metric %q: the Collector itself has %q", m.Name, own[k].Name))
			}
		}
		for k := range all[:i] {
			errs = append(errs, m.conflict(&all[k]))
		}
		for _, p := range c.published {
			for k := range p.metrics {
				errs = append(errs, m.conflict(&p.metrics[k]))
			}
		}
	}
	return errors.Join(errs...)
}

// Metrics are those of the Collector itself, which tell what [Collector.Health] does and the build, and then those that were published, in
// the order of publication. Of a nil Collector they are its own, for documents.
func (c *Collector) Metrics() []Metric {
	all := c.own()
	if c == nil {
		return all
	}
	c.publishedMu.Lock()
	defer c.publishedMu.Unlock()
	for _, p := range c.published {
		all = append(all, p.metrics...)
	}
	return all
}

// Version returns the version of windowstat in this program from its build information, or unknown.
func Version() string {
	const path = "github.com/windowstat/windowstat"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if info.Main.Path == path && info.Main.Version != "" {
		return info.Main.Version
	}
	for _, dep := range info.Deps {
		if dep.Path == path {
			return dep.Version
		}
	}
	return "unknown"
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
	metric("retired_resources_total", "", "Resources retired because they were idle, including those evicted by new names.",
		func(h Health) float64 { return float64(h.Retired) })
	metric("limits", "", "Limits in force, dry runs included.",
		func(h Health) float64 { return float64(h.Limits) })
	all = append(all, Metric{
		Name: "build_info", Help: "Always 1; the labels tell the build.", Labels: []string{"goversion", "version"}, Began: began,
		Read: func(yield func(float64, ...string)) {
			if c != nil {
				yield(1, runtime.Version(), Version())
			}
		},
	})
	metric("clock_steps_total", "", "Wall clock steps of a second or more.",
		func(h Health) float64 { return float64(h.Clock.Steps) })
	metric("clock_offset_seconds", "seconds", "Offset of the wall clock from the timeline; corrected by slewing seconds by at most 1%.",
		func(h Health) float64 { return h.Clock.Offset.Seconds() })
	metric("clock_repeated_seconds_total", "seconds", "Seconds that the wall clock named a second time after it was set back; counted in totals, not handed out.",
		func(h Health) float64 { return float64(h.Clock.Repeated) })
	return append(all, Metric{
		Name: "in_flight_oldest_seconds", Unit: "seconds", Labels: []string{"resource"}, Read: c.oldest,
		Help: "Age of the oldest call in flight of those that entered by a context; none while there is none.",
	})
}
