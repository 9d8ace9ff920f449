// Command spanmetrics is the OpenTelemetry Collector of TestSpanmetrics and TestSpansForwardedByACollector: it takes
// spans, makes metrics of them, and forwards both.
package main

import (
	"github.com/open-telemetry/opentelemetry-collector-contrib/connector/spanmetricsconnector"
	"go.opentelemetry.io/collector/connector"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/otlphttpexporter"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"

	"github.com/windowstat/windowstat/e2e/consumers"
)

func main() {
	consumers.Run(consumers.Parts{
		Receivers:  []receiver.Factory{otlpreceiver.NewFactory()},
		Connectors: []connector.Factory{spanmetricsconnector.NewFactory()},
		Exporters:  []exporter.Factory{otlphttpexporter.NewFactory()},
	})
}
