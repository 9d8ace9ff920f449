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

// Metric is a self-metric: a number about windowstat itself. Exporters show it on the pages of metrics that they serve.
// If its name ends in _total, it is a counter; otherwise it is a gauge. Exactly one of Value and Read must be set.
type Metric struct {
	// Name is the name without namespace. It consists of letters, digits and _, and does not start with a digit.
	Name string
	// Unit is the base unit, such as seconds. The name of a gauge must end with the unit. The name of a counter must
	// end with the unit and _total. Unit is empty for plain numbers.
	Unit string
	// Help is the HELP text, a noun phrase.
	Help string
	// Labels are the label names, in order. They follow the rules of Name, and must not begin with __.
	Labels []string
	// Value returns the value of a metric without labels. Several goroutines may call it concurrently. If Value panics,
	// pages omit the metric.
	Value func() float64
	// Read yields the series of a metric with labels: each value with its label values, in the order of Labels. Several
	// goroutines may call it concurrently. Read yields nothing if there is no series. Pages omit a series with a wrong
	// number of label values, and replace invalid UTF-8 in label values. If Read panics, pages show only the series
	// that it has yielded before.
	Read func(yield func(v float64, labels ...string))
	// Began is the time at which a counter started at zero. If Began is zero, [Collector.Publish] sets it to the
	// current time.
	Began time.Time
}

// Each iterates over the current values of the metric, with their label values.
func (m *Metric) Each(yield func(v float64, labels ...string)) {
	type series struct {
		v      float64
		labels []string
	}
	var all []series
	func() {
		defer func() { _ = recover() }() // one metric that panics must not break the page
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

// check returns an error that describes all invalid fields of the metric, or nil.
func (m *Metric) check() error {
	wrong := func(format string, args ...any) error {
		return fmt.Errorf("collector: metric %q: "+format, append([]any{m.Name}, args...)...)
	}
	var errs []error
	if !validName(m.Name) {
		errs = append(errs, wrong("a name consists of letters, digits and _, and does not start with a digit"))
	}
	if m.Unit != "" && !strings.HasSuffix(strings.TrimSuffix(m.Name, "_total"), "_"+m.Unit) {
		errs = append(errs, wrong("the name must end with the unit %q, and then _total if it is a counter", m.Unit))
	}
	if !utf8.ValidString(m.Help) {
		errs = append(errs, wrong("Help is not valid UTF-8"))
	}
	for i, l := range m.Labels {
		if !validName(l) || strings.HasPrefix(l, "__") {
			const rule = "a label consists of letters, digits and _, and does not start with a digit or __"
			errs = append(errs, wrong("label %q: "+rule, l))
		}
		if slices.Contains(m.Labels[:i], l) {
			errs = append(errs, wrong("label %q appears twice", l))
		}
	}
	switch {
	case (m.Value == nil) == (m.Read == nil):
		errs = append(errs, wrong("one of Value and Read is needed"))
	case m.Value != nil && len(m.Labels) > 0:
		errs = append(errs, wrong("a metric with labels needs Read"))
	}
	return errors.Join(errs...)
}

// conflict returns an error if the metrics m and o cannot be on one page.
func (m *Metric) conflict(o *Metric) error {
	// In OpenMetrics, the name of a counter does not include _total.
	base := func(m *Metric) string { return strings.TrimSuffix(m.Name, "_total") }
	switch {
	case base(m) != base(o):
		return nil
	case m.Name != o.Name:
		return fmt.Errorf("collector: metric %q: %q exists, and has the same name in OpenMetrics", m.Name, o.Name)
	case !slices.Equal(m.Labels, o.Labels):
		return fmt.Errorf("collector: metric %q: exists with the labels %q, not %q", m.Name, o.Labels, m.Labels)
	}
	return nil
}

// publication holds the metrics that one call of Publish has added.
type publication struct{ metrics []Metric }

// Publish adds self-metrics to every page of metrics that exporters serve for the Collector, including pages that exist
// already. Each part of windowstat publishes its own metrics, so the metrics of a part that does not run are absent.
// When the part ends, it calls the returned function withdraw to remove its metrics. Further calls of withdraw do
// nothing.
//
// Several parts may publish series with the same name and the same label values. Pages merge such series into one. For
// counters, pages show the sum, and for gauges the highest value. If the name of a gauge ends in _timestamp_seconds,
// pages show the lowest value instead: the lowest timestamp belongs to the part that is furthest behind. Such a gauge
// must always have a value: 0 for an event that has not happened yet.
//
//	metric                                   values of two parts        value on pages
//	push_samples_total{format="otlp"}        3 and 4                    7
//	push_lag_seconds{format="otlp"}          120 s and 5 s              120 s
//	push_last_success_timestamp_seconds      13:00:05 and 13:02:00      13:00:05
//
// Publish panics if a metric is invalid (see [Metric]), or if its name is in use for a different metric: a metric of
// the Collector itself, or a published metric with other labels. Names that differ only in _total are the same name.
// Publish does not know the names of the statistics on the pages, such as pass_total; pages omit a self-metric with
// such a name. A pedantic prometheus.Registry refuses metrics that are published after the page was registered.
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

// checkMetrics returns an error if a metric of the list is invalid or conflicts with another metric. The other metric
// may be in the list, belong to the Collector itself, or be published already. publishedMu must be held.
func (c *Collector) checkMetrics(all []Metric) error {
	var errs []error
	own := c.own()
	for i := range all {
		m := &all[i]
		errs = append(errs, m.check())
		for k := range own {
			if strings.TrimSuffix(m.Name, "_total") == strings.TrimSuffix(own[k].Name, "_total") {
				const conflict = "collector: metric %q: conflicts with %q of the Collector itself"
				errs = append(errs, fmt.Errorf(conflict, m.Name, own[k].Name))
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

// Metrics returns all self-metrics. The metrics of the Collector itself come first: the values of [Collector.Health],
// the memory, the build, and the oldest calls in flight. The published metrics follow in order of publication. If c is
// nil, Metrics returns only the metrics of the Collector itself, so that documentation can list them.
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

// Version returns the version of windowstat that this program contains, from the program's build information. If there
// is no build information, Version returns "unknown".
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

// own returns the metrics about the Collector itself, without the published ones.
func (c *Collector) own() (all []Metric) {
	var began time.Time
	if c != nil {
		began = c.began
	}
	metric := func(name, unit, help string, read func(Health) float64) {
		value := func() float64 { return read(c.Health()) }
		all = append(all, Metric{Name: name, Unit: unit, Help: help, Value: value, Began: began})
	}
	metric("resources", "", "Resources, including _other.",
		func(h Health) float64 { return float64(h.Resources) })
	metric("overflow_events_total", "",
		"Calls recorded for the resource _other, because there were too many names or combinations.",
		func(h Health) float64 { return float64(h.Overflow) })
	metric("unearned_events_total", "",
		"Calls recorded for a fallback resource such as unmatched, "+
			"because the service had not responded to their name with success.",
		func(h Health) float64 { return float64(h.Unearned) })
	metric("leaves", "", "Combinations of resource, origin and entrance, which take most of the memory.",
		func(h Health) float64 { return float64(h.Leaves) })
	metric("entrances", "", "Entrances.",
		func(h Health) float64 { return float64(h.Entrances) })
	metric("origin_overflow_events_total", "",
		"Calls recorded for the origin _other, because their resource had too many origins.",
		func(h Health) float64 { return float64(h.OriginOverflow) })
	metric("entrance_overflow_events_total", "",
		"Calls recorded for the entrance _other, because there were too many entrances.",
		func(h Health) float64 { return float64(h.EntranceOverflow) })
	metric("leaf_overflow_events_total", "",
		"Calls recorded for _other, because there was no memory for their combination of resource, origin and "+
			"entrance.",
		func(h Health) float64 { return float64(h.LeafOverflow) })
	metric("tree_overflow_events_total", "",
		"Calls that the call tree lacks, because they are nested too deeply or the tree is full.",
		func(h Health) float64 { return float64(h.TreeOverflow) })
	metric("retired_resources_total", "",
		"Resources retired because they were idle, including those evicted by new names.",
		func(h Health) float64 { return float64(h.Retired) })
	metric("limits", "", "Limits in force, including dry runs.",
		func(h Health) float64 { return float64(h.Limits) })
	all = append(all, Metric{
		Name: "build_info", Help: "Build information in labels. The value is always 1.",
		Labels: []string{"goversion", "version"}, Began: began,
		Read: func(yield func(float64, ...string)) {
			if c != nil {
				yield(1, runtime.Version(), Version())
			}
		},
	})
	metric("clock_steps_total", "", "Wall clock steps of a second or more.",
		func(h Health) float64 { return float64(h.Clock.Steps) })
	metric("clock_offset_seconds", "seconds",
		"Offset of the wall clock from the timeline, which corrects it by slewing seconds by at most 1%.",
		func(h Health) float64 { return h.Clock.Offset.Seconds() })
	metric("clock_repeated_seconds_total", "seconds",
		"Seconds whose name was used before, because the wall clock was set back. "+
			"They are counted in totals and not exported.",
		func(h Health) float64 { return float64(h.Clock.Repeated) })
	all = append(all, Metric{
		Name: "memory_bytes", Unit: "bytes", Labels: []string{"part"}, Began: began,
		Help: "Heap memory of the statistics by part: counters and windows, records of seconds, " +
			"histograms of seconds, names, limits, calls in flight.",
		Read: func(yield func(float64, ...string)) {
			if c != nil {
				c.Memory().parts(yield)
			}
		},
	})
	metric("memory_reserved_bytes", "bytes",
		"Heap memory that is reserved: what names, combinations and limits take once they are busy.",
		func(h Health) float64 { return float64(h.MemoryReserved) })
	metric("memory_max_bytes", "bytes",
		"Maximum of the reserved memory. Without free memory, new names and combinations count as _other.",
		func(h Health) float64 { return float64(h.MaxMemory) })
	return append(all, Metric{
		Name: "in_flight_oldest_seconds", Unit: "seconds", Labels: []string{"resource"}, Read: c.oldest,
		Help: "Age of the oldest call in flight that was entered with a context. Absent while there is none.",
	})
}
