// Package otelstat counts the spans of a service that traces with OpenTelemetry: a SpanProcessor on package collector.
//
//	provider := trace.NewTracerProvider(
//		trace.WithSpanProcessor(otelstat.NewProcessor(c)),
//		trace.WithSampler(trace.AlwaysRecord(sampler)), // counts all, exports those that the sampler takes
//		trace.WithBatcher(exporter),
//	)
//
// # Sampling
//
// The SDK tells processors of spans that are recorded, and a sampler that drops a span keeps it from being counted. So a service
// that samples wraps its sampler, as above, in the SDK's AlwaysRecord: then every span is counted, and those that the sampler
// takes are exported, as before. A call is counted here with the id of its trace as an exemplar if its trace is sampled.
//
// # What is counted
//
// A span has its final name only when it ends: that of otelhttp gets the route's after the handler has run. So a call is counted
// when its span ends, under the name that it has then, in the second in which End is called: it passes and completes, with the
// span's duration, in one change. Its begin is in no second, and nothing is known of what was in flight: concurrency reads as 0,
// no limit refuses such a call, and limits on concurrency do not know it. Use a middleware for these. A span that
// never ends is never counted, and nothing is kept for it; one that ends twice is one call. A timestamp that is given to End
// changes the duration, not the second; where it is before the begin, the duration is 0.
//
// Spans of the kinds server and consumer are inbound calls, by [Entrance]; those of the kinds client and producer are outbound.
// A span with a parent in the same process is a part of that: it is in its resource's numbers, not in those of the entrance or
// the process. There is no call tree: a processor does not know of the entries above a span.
//
// The code of a call is the attribute http.response.status_code, or http.status_code; of gRPC rpc.grpc.status_code, or
// rpc.response.status_code with rpc.system (or rpc.system.name) grpc. A call whose span has the status Error is an exception,
// of type [*Error], by which [collector.Options].Exception and ExceptionClass can tell which; [Exception] puts another rule in the
// place of the status. A span that was never given the status Error is none, whatever its events are: a panic is an exception if
// the instrumentation says so, as those of HTTP and gRPC do.
//
// # Names
//
// The names of spans are few, by OpenTelemetry's conventions. Where a service makes them of what strangers send, such as paths, the
// Collector's limits hold: what is beyond them is counted for [collector.Other]. [Skip] leaves spans out, such as those of health checks,
// or all that are internal.
package otelstat

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/windowstat/windowstat/collector"
)

// Entrance is the entrance of spans of the kinds server and consumer.
const Entrance = "otel"

// NewProcessor returns a processor that counts every span that ends, see the package's documentation. It is safe for concurrent
// use, keeps nothing of a span, and starts nothing: ForceFlush and Shutdown have nothing to do. Beside what the SDK takes to show a span
// to a processor, a call costs some hundred nanoseconds, and the id of a trace that is sampled an allocation. With a nil Collector it counts nothing.
func NewProcessor(c *collector.Collector, opts ...Option) sdktrace.SpanProcessor {
	p := &processor{c: c}
	for _, set := range opts {
		set(&p.options)
	}
	return p
}

type processor struct {
	c *collector.Collector
	options
}

// Error is the error of a call whose span failed.
type Error struct {
	// Type is the span's attribute error.type, empty if it has none.
	Type string
	// Description is that of the span's status.
	Description string
}

func (e *Error) Error() string {
	switch {
	case e.Description != "":
		return e.Description
	case e.Type != "":
		return e.Type
	}
	return "otelstat: the span has the status Error"
}

func (p *processor) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (p *processor) Shutdown(context.Context) error                  { return nil }
func (p *processor) ForceFlush(context.Context) error                { return nil }

// OnEnd counts the call.
func (p *processor) OnEnd(span sdktrace.ReadOnlySpan) {
	if p.c == nil || p.skips(span) {
		return
	}
	a := read(span.Attributes())
	parent := span.Parent()
	call := collector.Ended{
		RT:     span.EndTime().Sub(span.StartTime()),
		Code:   a.code(),
		Nested: parent.IsValid() && !parent.IsRemote(),
	}
	if p.failed(span) {
		call.Err = &Error{a.errorType, span.Status().Description}
	}
	if x := span.SpanContext(); x.IsSampled() {
		call.TraceID = x.TraceID().String()
	}
	var scratch [3]collector.CallOption
	with := scratch[:0]
	switch span.SpanKind() {
	case trace.SpanKindServer, trace.SpanKindConsumer:
		with = append(with, collector.Inbound(), collector.Entrance(Entrance))
	case trace.SpanKindClient, trace.SpanKindProducer:
		with = append(with, collector.Outbound())
	}
	if p.origin != nil {
		if name := p.origin(span); name != "" {
			with = append(with, collector.Origin(name))
		}
	}
	p.c.Record(span.Name(), call, with...)
}

// failed reports whether the call is an exception, unless the Collector's options say no.
func (p *processor) failed(span sdktrace.ReadOnlySpan) bool {
	if p.exception != nil {
		return p.exception(span)
	}
	return span.Status().Code == codes.Error
}

// Option changes how spans are counted. Its function is called when a span ends, must be safe for concurrent use, and must not
// keep the span; if it panics, that goes on to who ends the span, and the call is not counted.
type Option func(*options)

type options struct {
	origin    func(sdktrace.ReadOnlySpan) string // nil without the option
	exception func(sdktrace.ReadOnlySpan) bool   // nil for the status
	skip      []func(sdktrace.ReadOnlySpan) bool
}

// Origin tells who calls, of an attribute of the span for one; empty is nobody in particular.
func Origin(of func(sdktrace.ReadOnlySpan) string) Option {
	return func(o *options) { o.origin = of }
}

// Exception tells which spans are exceptions, in the place of those with the status Error, which nil stands for.
func Exception(is func(sdktrace.ReadOnlySpan) bool) Option {
	return func(o *options) { o.exception = is }
}

// Skip tells which spans are not counted. Of several such options each can skip a span.
func Skip(which func(sdktrace.ReadOnlySpan) bool) Option {
	return func(o *options) { o.skip = append(o.skip, which) }
}

func (o *options) skips(span sdktrace.ReadOnlySpan) bool {
	return slices.ContainsFunc(o.skip, func(which func(sdktrace.ReadOnlySpan) bool) bool { return which != nil && which(span) })
}
