package bench

import (
	"context"
	"errors"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	sdk "go.opentelemetry.io/otel/sdk/metric"
)

// newOpenTelemetry uses the SDK with a counter, an up-down counter and a histogram with client_golang's bounds. The SDK
// has no handle for a resource, but newOpenTelemetry keeps the sets of attributes and the lists of options. It disables
// the limit on the number of series, 2,000 by default.
func newOpenTelemetry(names []string) (Recorder, error) {
	provider := sdk.NewMeterProvider(sdk.WithReader(sdk.NewManualReader()), sdk.WithCardinalityLimit(0))
	meter := provider.Meter("bench")
	pass, errPass := meter.Int64Counter("calls")
	inFlight, errInFlight := meter.Int64UpDownCounter("calls_in_flight")
	duration, errDuration := meter.Float64Histogram("call_duration",
		metric.WithExplicitBucketBoundaries(prometheus.DefBuckets...))
	if err := errors.Join(errPass, errInFlight, errDuration); err != nil {
		return Recorder{}, err
	}
	add := make([][]metric.AddOption, len(names))
	record := make([][]metric.RecordOption, len(names))
	for i, name := range names {
		set := metric.WithAttributeSet(attribute.NewSet(attribute.String("resource", name)))
		add[i], record[i] = []metric.AddOption{set}, []metric.RecordOption{set}
	}
	ctx := context.Background()
	return Recorder{
		Call: func(i int) {
			pass.Add(ctx, 1, add[i]...)
			inFlight.Add(ctx, 1, add[i]...)
			start := Now()
			duration.Record(ctx, (Now() - start).Seconds(), record[i]...)
			inFlight.Add(ctx, -1, add[i]...)
		},
		Took: func(i int, rt time.Duration) {
			pass.Add(ctx, 1, add[i]...)
			inFlight.Add(ctx, 1, add[i]...)
			duration.Record(ctx, rt.Seconds(), record[i]...)
			inFlight.Add(ctx, -1, add[i]...)
		},
		Keep: provider,
	}, nil
}
