// Package otelstat counts the spans of a service that traces with OpenTelemetry. It provides a SpanProcessor for
// package collector.
//
//	provider := trace.NewTracerProvider(
//		trace.WithSpanProcessor(otelstat.NewProcessor(c)),
//		trace.WithSampler(trace.AlwaysRecord(sampler)), // count all spans, export sampled ones
//		trace.WithBatcher(exporter),
//	)
//
// # Sampling
//
// The SDK passes only recorded spans to processors, so spans that a sampler drops are not counted. A service that
// samples should wrap its sampler in AlwaysRecord of the SDK, as above. Then all spans are counted, and sampled spans
// are exported as before. If the trace of a call is sampled, the id of the trace becomes an exemplar.
//
// # What is counted
//
// A span has its final name only when it ends: otelhttp, for example, sets the route after the handler has run. A call
// is therefore counted when its span ends, under the final name of the span. The pass and the completion both count in
// the second when End is called, in one step. The response time of the call is the duration of the span.
//
// The start of the call is not recorded in any second, and the calls in flight are unknown. Concurrency reads as 0,
// limits do not refuse calls of spans, and limits on concurrency do not count these calls. Use middleware if you need
// these features. A span that never ends is never counted, and takes no memory of this package. A span that ends twice
// counts as one call. A timestamp that is passed to End changes the duration of the call, but not the second in which
// the call is counted. If the timestamp is before the start of the span, the duration is 0.
//
// Spans of the kinds server and consumer are inbound calls, and enter by [Entrance]. Spans of the kinds client and
// producer are outbound calls. A span with a parent in the same process is a part of the parent's call: it counts for
// its own resource, but not for the entrance or the process. There is no call tree, because a processor does not know
// the calls that the span is nested in.
//
// The code of an HTTP call is the attribute http.response.status_code or http.status_code. The code of a gRPC call is
// the attribute rpc.grpc.status_code, or rpc.response.status_code if rpc.system or rpc.system.name is grpc. A call is
// an exception if its span has the status Error. Its error is an [*Error], which [collector.Options].Exception and
// ExceptionClass can examine. The option [Exception] replaces the rule that the status Error is an exception. Events of
// a span are ignored: a panic is an exception only if the instrumentation sets the status Error, as HTTP and gRPC
// instrumentation does.
//
// # Names
//
// By OpenTelemetry's conventions, spans have few names. A service may still make names from requests, such as from
// paths. The Collector then limits the number of resources: calls of further names are counted as [collector.Other].
// [Skip] excludes spans, such as health checks or all internal spans.
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

// NewProcessor returns a processor that counts every span that ends, see the documentation of the package. The
// processor is safe for concurrent use, stores nothing per span, and starts no goroutine, so its methods ForceFlush and
// Shutdown do nothing. In addition to the cost of the SDK, a call costs a few hundred nanoseconds, and one allocation
// for the id if the trace is sampled. With a nil Collector the processor counts nothing.
func NewProcessor(c *collector.Collector, opts ...Option) sdktrace.SpanProcessor {
	p := &processor{c: c}
	for _, set := range opts {
		set(&p.options)
	}
	return p
}

// processor is the SpanProcessor that [NewProcessor] returns.
type processor struct {
	c *collector.Collector
	options
}

// Error is the error of a call whose span failed.
type Error struct {
	// Type is the attribute error.type of the span, or empty.
	Type string
	// Description is the description of the span's status.
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

// OnEnd counts the call of a span.
func (p *processor) OnEnd(span sdktrace.ReadOnlySpan) {
	if p.c == nil || p.skips(span) {
		return
	}
	a := readAttributes(span.Attributes())
	parent := span.Parent()
	call := collector.Completed{
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

// failed reports whether the call of a span is an exception. [collector.Options].Exception can decide that the call is
// no exception.
func (p *processor) failed(span sdktrace.ReadOnlySpan) bool {
	if p.exception != nil {
		return p.exception(span)
	}
	return span.Status().Code == codes.Error
}

// Option configures how spans are counted. The function that an option takes runs when a span ends. It must be safe for
// concurrent use, and must not keep the span. If the function panics, the panic propagates to the caller of End, and
// the call is not counted.
type Option func(*options)

type options struct {
	origin    func(sdktrace.ReadOnlySpan) string // nil without the option
	exception func(sdktrace.ReadOnlySpan) bool   // nil selects spans with the status Error
	skip      []func(sdktrace.ReadOnlySpan) bool
}

// Origin sets a function that returns the origin of a span's call, the name of the caller, for example from an
// attribute of the span. An empty name means no origin.
func Origin(of func(sdktrace.ReadOnlySpan) string) Option {
	return func(o *options) { o.origin = of }
}

// Exception sets the function that selects the spans that are exceptions. Without the option, or if the function is
// nil, spans with the status Error are exceptions.
func Exception(is func(sdktrace.ReadOnlySpan) bool) Option {
	return func(o *options) { o.exception = is }
}

// Skip selects spans that are not counted. With several Skip options, a span is skipped if one of them selects it.
func Skip(which func(sdktrace.ReadOnlySpan) bool) Option {
	return func(o *options) { o.skip = append(o.skip, which) }
}

func (o *options) skips(span sdktrace.ReadOnlySpan) bool {
	return slices.ContainsFunc(
		o.skip,
		func(which func(sdktrace.ReadOnlySpan) bool) bool { return which != nil && which(span) },
	)
}
