// Package consumers runs an OpenTelemetry Collector of the parts that a test needs. Each test has a program of its own below, with the parts
// that it needs, so that what is measured of one is not that of all.
//
// It is a module of its own, because nothing else needs the three hundred modules that these are made of.
package consumers

import (
	"log"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

// Parts are what a Collector is made of.
type Parts struct {
	Receivers  []receiver.Factory
	Connectors []connector.Factory
	Exporters  []exporter.Factory
}

// Run runs a Collector as the command line says.
func Run(p Parts) {
	collector := otelcol.NewCommand(otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "otelcol", Version: "e2e"},
		Factories: func() (f otelcol.Factories, err error) {
			f.Telemetry = otelconftelemetry.NewFactory()
			if f.Receivers, err = otelcol.MakeFactoryMap(p.Receivers...); err != nil {
				return f, err
			}
			if f.Connectors, err = otelcol.MakeFactoryMap(p.Connectors...); err != nil {
				return f, err
			}
			f.Exporters, err = otelcol.MakeFactoryMap(p.Exporters...)
			return f, err
		},
		ConfigProviderSettings: otelcol.ConfigProviderSettings{ResolverSettings: confmap.ResolverSettings{
			DefaultScheme:     "file",
			ProviderFactories: []confmap.ProviderFactory{fileprovider.NewFactory()},
		}},
	})
	if err := collector.Execute(); err != nil {
		log.Fatal(err)
	}
}
