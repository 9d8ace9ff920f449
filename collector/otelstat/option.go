package otelstat

import (
	"slices"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

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
