package otelstat_test

import (
	"context"
	"fmt"
	"log"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/otelstat"
)

func Example() {
	c, err := collector.New(collector.Options{})
	if err != nil {
		log.Fatal(err)
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithSpanProcessor(otelstat.NewProcessor(c)),
		sdktrace.WithSampler(sdktrace.AlwaysRecord(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(0.01)))),
	)
	for range 100 {
		_, span := provider.Tracer("shop").Start(context.Background(), "charge")
		span.End()
	}
	fmt.Println(c.Resource("charge").Snapshot(nil).Total.Complete, "calls")
	// Output: 100 calls
}
