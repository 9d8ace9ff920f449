package exporter

import (
	"slices"

	"github.com/windowstat/windowstat/exporter/internal/table"
)

// Metric is a row of the catalogue of metrics, for documentation, dashboards and their tests.
type Metric struct {
	Name    string // without namespace
	Type    string // counter, gauge, histogram or gaugehistogram
	Unit    string // base unit, the end of the name before _total; empty for plain numbers
	Help    string
	Labels  []string
	Seconds bool // on the per-second page
	Logged  bool // also in the metric log, without loss
}

// Catalogue returns every metric of resources and of inbound traffic, on the page of totals and on the per-second page,
// in the order of the documentation. [collector.Collector.Metrics] returns the self-metrics of the parts. The caller
// owns the slice.
func Catalogue() []Metric {
	var all []Metric
	for _, m := range append(table.Metrics(), table.Inbound()...) {
		all = append(all, Metric{Name: m.Name, Type: string(m.Type), Unit: m.Unit, Help: m.Help, Labels: m.Labels})
	}
	run := table.Run(Namespace)
	all = append(all, Metric{Name: table.RunName, Type: string(run.Type), Help: run.Help, Seconds: true})
	dryRun := []table.Second{table.DryRun()}
	for _, m := range slices.Concat(table.Seconds(), table.Histograms(), dryRun, table.InboundSeconds()) {
		all = append(all, Metric{
			Name: m.Name, Type: string(m.Type), Unit: m.Unit, Help: m.Help, Labels: m.Labels,
			Seconds: true, Logged: m.Logged,
		})
	}
	return all
}

// SentinelCatalogue returns the metrics of the seconds in Sentinel's metric logs, see [Options].Sentinel. The caller
// owns the slice.
func SentinelCatalogue() []Metric {
	run := table.Run(Namespace)
	all := []Metric{{Name: table.RunName, Type: string(run.Type), Help: run.Help, Seconds: true}}
	for _, m := range append(table.SentinelSeconds(), table.SentinelInboundSeconds()...) {
		all = append(all, Metric{
			Name: m.Name, Type: string(m.Type), Unit: m.Unit, Help: m.Help, Labels: m.Labels,
			Seconds: true, Logged: true,
		})
	}
	return all
}
