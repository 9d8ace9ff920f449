// Package walk goes through all metrics of the catalogue and hands their values to a way out. It is what the ways out
// share that show the present, and not single seconds.
package walk

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/node"
)

// Options say what is shown. The way out documents them.
type Options struct {
	Namespace    string // [exporter.Namespace] if empty
	Sources      []exporter.Source
	By           string
	HistogramsBy bool
}

// Metrics are the metrics that a way out shows. They are safe for concurrent use.
type Metrics struct {
	// List is all of them, in the order of the catalogue.
	List []*Metric

	stats        *collector.Collector
	by           string
	histogramsBy bool
	sources      []exporter.Source
	byName       map[string]*Metric // without namespace
}

// Metric is a row of the catalogue.
type Metric struct {
	exporter.Metric
	Family exporter.Family // with the full name
	No     int             // among all

	wordLabels []string
}

// The labels that [Options].By can be.
const (
	byOrigin   = "origin"
	byEntrance = "entrance"
)

// validNamespace is what may stand before an underscore and a name.
var validNamespace = regexp.MustCompile(`^[a-zA-Z_]([a-zA-Z0-9_]*[a-zA-Z0-9])?$`)

// CheckNamespace tells what is wrong with a namespace. The empty one is the default.
func CheckNamespace(name string) error {
	if name != "" && !validNamespace.MatchString(name) {
		return fmt.Errorf("namespace %q: letters, digits and _ are allowed, no digit in front and no _ at the end", name)
	}
	return nil
}

// New makes them. The error names every option that is wrong.
func New(c *collector.Collector, o Options) (*Metrics, error) {
	errs := []error{CheckNamespace(o.Namespace)}
	if o.By != "" && o.By != byOrigin && o.By != byEntrance {
		errs = append(errs, fmt.Errorf("option By is %q; %q, %q or nothing is allowed", o.By, byOrigin, byEntrance))
	}
	if o.HistogramsBy && o.By == "" {
		errs = append(errs, errors.New("option HistogramsBy without By"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if o.Namespace == "" {
		o.Namespace = exporter.Namespace
	}
	p := &Metrics{stats: c, by: o.By, histogramsBy: o.HistogramsBy, sources: o.Sources, byName: map[string]*Metric{}}
	for _, m := range exporter.Catalogue() {
		if m.Name == exporter.RT && c.DurationsUnknown() {
			continue
		}
		if o.By != "" {
			m = labelled(m, o.By, o.HistogramsBy)
		}
		x := &Metric{Metric: m, Family: exporter.Family{Name: o.Namespace + "_" + m.Name, Type: m.Type, Help: m.Help}, No: len(p.List)}
		if m.Words != nil {
			x.wordLabels = slices.Sorted(slices.Values(m.Labels))
		}
		p.List = append(p.List, x)
		p.byName[m.Name] = x
	}
	return p, nil
}

// Families are those of all metrics.
func (p *Metrics) Families() []*exporter.Family {
	var list []*exporter.Family
	for _, m := range p.List {
		list = append(list, &m.Family)
	}
	return list
}

// labelled gives a metric of resources one more label.
func labelled(m exporter.Metric, by string, histograms bool) exporter.Metric {
	switch {
	case m.Name == exporter.Blocks: // reasons are known for the resource alone
		m.Words = nil
		m.Resource = func(s *node.Snapshot) float64 { return float64(s.Total.Block) }
		m.Labels = []string{"resource", by}
	case m.Resource != nil || m.Type == exporter.Histogram && histograms:
		m.Labels = append(slices.Clone(m.Labels), by)
	}
	return m
}
