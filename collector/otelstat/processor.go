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
