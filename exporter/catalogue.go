package exporter

import (
	"slices"

	"github.com/windowstat/windowstat/exporter/internal/table"
)

// Metric is a metric of a service: a row of the catalogue, for documents, dashboards and their tests.
type Metric struct {
	Name    string // without namespace
	Type    string // counter, gauge, histogram or gaugehistogram
	Unit    string // the base unit that the name ends with, before _total; empty for plain numbers
	Help    string
	Labels  []string
	Seconds bool // it is on the per-second page
	Logged  bool // and the metric log has it without a loss
}

// Catalogue is every metric of resources and of all inbound traffic, on the page of totals and on the per-second page, in the
// order in which they are documented. Those that parts have about themselves are [collector.Collector.Metrics]. The caller owns
// the slice.
func Catalogue() []Metric {
	var all []Metric
	for _, m := range append(table.Metrics(), table.Inbound()...) {
		all = append(all, Metric{Name: m.Name, Type: string(m.Type), Unit: m.Unit, Help: m.Help, Labels: m.Labels})
	}
	run := table.Run(Namespace)
	all = append(all, Metric{Name: table.RunName, Type: string(run.Type), Help: run.Help, Seconds: true})
	for _, m := range slices.Concat(table.Seconds(), table.Histograms(), []table.Second{table.DryRun()}, table.InboundSeconds()) {
		all = append(all, Metric{
			Name: m.Name, Type: string(m.Type), Unit: m.Unit, Help: m.Help, Labels: m.Labels, Seconds: true, Logged: m.Logged,
		})
	}
	return all
}
