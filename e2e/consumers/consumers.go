// Package consumers runs an OpenTelemetry Collector with the components that a test needs. Each test has its own
// program in a subdirectory, with only these components. A measurement of one test therefore does not include the
// components of the others.
//
// The package is a separate module, because nothing else needs the three hundred modules of the components.
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

// Parts are the components of a Collector.
type Parts struct {
	Receivers  []receiver.Factory
	Connectors []connector.Factory
	Exporters  []exporter.Factory
}

// Run runs a Collector with the arguments of the command line.
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
