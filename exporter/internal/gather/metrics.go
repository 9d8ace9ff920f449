// Package gather reads the current values of all metrics, of resources and of windowstat itself, for packages prom and
// vm.
//
// [Metrics.Gather] visits each resource once. It takes one snapshot of each view and reads all rows of the table from
// it, so the samples of a resource are consistent; two resources are read one after the other. The [Sink] is a text
// page or the metrics of client_golang. Self-metrics come last. A part that does not run has no series.
package gather

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/table"
)

// Options configure a Metrics. prom.Options documents the fields.
type Options struct {
	Namespace string // [table.Namespace] if empty
	By        By
}

// Metrics holds the metrics of one exporter. It is immutable and safe for concurrent use.
type Metrics struct {
	list    []*metric // metrics of resources, in the documented order
	inbound []*metric // metrics of all inbound traffic

	conventions *conventions // nil unless the Collector has the option OpenTelemetry

	stats     *collector.Collector
	namespace string
	by        By
	families  []*table.Family // of list and of inbound
	taken     map[string]bool // full names on a page, without the suffix _total
}

// metric is a metric with its full name.
type metric struct {
	table.Metric
	family table.Family

	sorted []string // labels, sorted
}

// By is an additional label of the metrics of resources; empty means no label.
type By string

// The values of By.
const (
	ByOrigin   By = "origin"
	ByEntrance By = "entrance"
)

// validNamespace matches a valid prefix of a metric name, without the underscore.
var validNamespace = regexp.MustCompile(`^[a-zA-Z_]([a-zA-Z0-9_]*[a-zA-Z0-9])?$`)

// CheckNamespace returns an error for an invalid namespace. An empty one is valid.
func CheckNamespace(name string) error {
	if name != "" && !validNamespace.MatchString(name) {
		return fmt.Errorf("%q: letters, digits and _ are allowed, no digit in front and no _ at the end", name)
	}
	return nil
}

// Check returns all invalid options of package pkg as [collector.OptionError]s.
func (o Options) Check(pkg string) error {
	var errs []error
	wrong := func(field string, err error) {
		errs = append(errs, &collector.OptionError{Package: pkg, Field: field, Err: err})
	}
	if err := CheckNamespace(o.Namespace); err != nil {
		wrong("Namespace", err)
	}
	if o.By != "" && o.By != ByOrigin && o.By != ByEntrance {
		wrong("By", fmt.Errorf("%q; %q, %q or nothing is allowed", o.By, ByOrigin, ByEntrance))
	}
	return errors.Join(errs...)
}

// New creates the Metrics. The options must be valid.
func New(c *collector.Collector, o Options) *Metrics {
	p := &Metrics{stats: c, namespace: cmp.Or(o.Namespace, table.Namespace), by: o.By, taken: map[string]bool{}}
	register := func(f *table.Family) {
		p.families = append(p.families, f)
		p.taken[strings.TrimSuffix(f.Name, "_total")] = true
		if f.Type == table.Histogram {
			p.taken[f.Name+"_bucket"], p.taken[f.Name+"_count"], p.taken[f.Name+"_sum"] = true, true, true
		}
	}
	add := func(to *[]*metric, m table.Metric) {
		if m.Type == table.Histogram && c.DurationsUnknown() {
			return
		}
		f := table.Family{Name: p.namespace + "_" + m.Name, Type: m.Type, Unit: m.Unit, Help: m.Help, Labels: m.Labels}
		x := &metric{Metric: m, family: f, sorted: slices.Sorted(slices.Values(m.Labels))}
		*to = append(*to, x)
		register(&x.family)
	}
	for _, m := range table.Metrics() {
		if o.By == "" {
			add(&p.list, m)
			continue
		}
		add(&p.list, labelled(m, string(o.By)))
		if m.Name == table.Blocks {
			add(&p.list, blocksBy(string(o.By)))
		}
	}
	for _, m := range table.Inbound() {
		add(&p.inbound, m)
	}
	if c.OpenTelemetry() {
		p.conventions = newConventions(c)
		for _, f := range p.conventions.families() {
			register(f)
		}
	}
	return p
}

// labelled adds a label to a metric of resources. It leaves histograms unchanged, and metrics whose other label, such
// as the reason of blocks, is known for the whole resource only.
func labelled(m table.Metric, by string) table.Metric {
	if m.Value != nil || m.ByCode {
		m.Labels = append(slices.Clone(m.Labels), by)
	}
	return m
}

// blocksBy returns the metric that counts blocks by origin or by entrance, beside the blocks by reason.
func blocksBy(by string) table.Metric {
	return table.Metric{
		Name: "block_by_" + by + "_total", Type: table.Counter, Labels: []string{"resource", by},
		Help:  "Calls refused, by " + by + ".",
		Value: func(r *table.Reading) float64 { return float64(r.Total.Block) },
	}
}
