package push

import (
	"net/http"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
)

// OTLP is OpenTelemetry's protocol over HTTP, protobuf with gzip: for Prometheus with --web.enable-otlp-receiver
// (…/api/v1/otlp/v1/metrics), VictoriaMetrics (…/opentelemetry/v1/metrics), an OpenTelemetry Collector (…:4318/v1/metrics) and others.
//
// A second is a gauge of each metric, under the name and with the time that all other ways out give it: the start of the second. Beside
// them are cumulative sums, such as windowstat_persecond_pass_total, and with [Options.Histogram] cumulative exponential histograms, such
// as windowstat_persecond_rt_seconds. They count since the process first used the resource, and have OTLP's time, the end of the second.
// They are not sent for seconds that come from the metric log; the next ones that are have what was counted then, unless the process has
// ended.
//
// The labels job and instance are the resource's service.name and service.instance.id. All labels are attributes of the points, these two
// as well, so that a receiver that keeps attributes as they are has the series under the same labels as those that Prometheus makes.
var OTLP Format = otlp{}

// OTLPDelta is [OTLP] with delta temporality: sums and histograms, such as windowstat_persecond_rt_distribution_seconds, are of single
// seconds, and have the start and the end of theirs. The gauges stay. As some receivers refuse every request with a delta in it
// (Prometheus without --enable-feature=otlp-native-delta-ingestion), sums and histograms have requests of their own.
var OTLPDelta Format = otlp{delta: true}

type otlp struct{ delta bool }

func (o otlp) name() string {
	if o.delta {
		return "otlp_delta"
	}
	return "otlp"
}

func (otlp) prepare(r *http.Request) {
	r.Header.Set("Content-Type", "application/x-protobuf")
	r.Header.Set("Content-Encoding", "gzip")
}

func (o otlp) encoder() encoder {
	return &otlpEncoder{delta: o.delta, metrics: map[string]*otlpMetric{}}
}

func (o otlp) temporality() (sums, histograms seconds.Temporality) {
	if o.delta {
		return seconds.Single, seconds.Single
	}
	return seconds.Cumulative, seconds.Cumulative
}

func (o otlp) apart(f *table.Family) bool { return o.delta && f.Type != table.Gauge }

// The fields of ExportMetricsServiceResponse (collector/metrics/v1/metrics_service.proto).
const (
	responsePartialSuccess = 1
	partialRejected        = 1 // data points, which are our samples
	partialMessage         = 2
)

func (otlp) refused(body []byte) (samples int64, words string) {
	eachField(body, func(no protowire.Number, _ uint64, partial []byte) {
		if no != responsePartialSuccess {
			return
		}
		eachField(partial, func(no protowire.Number, v uint64, text []byte) {
			switch no {
			case partialRejected:
				samples = int64(v)
			case partialMessage:
				words = string(text)
			}
		})
	})
	return samples, words
}
