package exporter

import (
	"strings"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/limitfile"
	"github.com/windowstat/windowstat/exporter/internal/gather"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/exporter/internal/version"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/exporter/push"
	"github.com/windowstat/windowstat/exporter/sampler"
	"github.com/windowstat/windowstat/exporter/verify"
)

// Version is the version of windowstat in this program, as the build knows it.
func Version() string { return version.String() }

// Metric is a metric that windowstat has: a row of the catalogue, for documents, dashboards and their tests.
type Metric struct {
	Name    string // without namespace
	Type    string // counter, gauge, histogram or gaugehistogram
	Unit    string // the base unit that the name ends with, before _total; empty for plain numbers
	Help    string
	Labels  []string
	Seconds bool // it is on the per-second page
	Logged  bool // and the metric log has it without a loss
}

// Catalogue is every metric that a Collector and its ways out can have, in the order in which they are documented. The
// caller owns the slice.
func Catalogue() []Metric {
	var all []Metric
	for _, m := range append(table.Metrics(), table.Inbound()...) {
		all = append(all, Metric{Name: m.Name, Type: string(m.Type), Unit: m.Unit, Help: m.Help, Labels: m.Labels})
	}
	for _, list := range [][]collector.Metric{
		(*collector.Collector)(nil).Metrics(), limitfile.Metrics(), metriclog.Metrics(), prom.Metrics(), sampler.Metrics(), push.Metrics(), verify.Metrics(), {gather.BuildInfo},
	} {
		for _, m := range list {
			all = append(all, Metric{Name: m.Name, Type: string(table.TypeOf(m.Name)), Unit: m.Unit, Help: m.Help, Labels: m.Labels})
		}
	}
	perSecond := func(metrics []table.Second, histograms table.Histograms, labels []string) {
		for _, m := range metrics {
			all = append(all, Metric{
				Name: m.Name, Type: string(table.Gauge), Unit: m.Unit, Help: m.Help, Labels: labels, Seconds: true, Logged: m.Logged,
			})
		}
		for _, f := range []table.Family{histograms.Cumulative, histograms.Single} {
			all = append(all, Metric{
				Name: strings.TrimPrefix(f.Name, Namespace+"_"), Type: string(f.Type), Unit: "seconds", Help: f.Help, Labels: labels, Seconds: true,
			})
		}
	}
	run := table.Run(Namespace)
	all = append(all, Metric{Name: table.RunName, Type: string(run.Type), Help: run.Help, Seconds: true})
	resources, inbound := table.SecondsHistograms(Namespace)
	perSecond(table.Seconds(), resources, []string{"resource"})
	dry := table.DryRun()
	all = append(all, Metric{Name: dry.Name, Type: string(table.Gauge), Help: dry.Help, Labels: []string{"reason", "resource"}, Seconds: true})
	perSecond(table.InboundSeconds(), inbound, nil)
	return all
}
