// Command scraper is the OpenTelemetry Collector of TestOpenTelemetryCollector and TestOpenTelemetryCollectorPushedTo:
// it scrapes, takes OTLP, and forwards by remote write.
package main

import (
	"github.com/open-telemetry/opentelemetry-collector-contrib/exporter/prometheusremotewriteexporter"
	"github.com/open-telemetry/opentelemetry-collector-contrib/receiver/prometheusreceiver"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"

	"github.com/windowstat/windowstat/e2e/consumers"
)

func main() {
	consumers.Run(consumers.Parts{
		Receivers: []receiver.Factory{prometheusreceiver.NewFactory(), otlpreceiver.NewFactory()},
		Exporters: []exporter.Factory{prometheusremotewriteexporter.NewFactory()},
	})
}
