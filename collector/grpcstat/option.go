package grpcstat

import (
	"context"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/windowstat/windowstat/collector"
)

// Option configures how calls are counted. Clients support [Exception] and [Skip]; [Origin] applies to servers only.
type Option func(*options)

type options struct {
	c         *collector.Collector
	origin    func(context.Context) string // nil without the option
	exception func(codes.Code) bool
	skip      []func(ctx context.Context, method string) bool
}

// apply returns the options of a server or a client that result from opts. The parameter exception is the default
// function for the option [Exception].
func apply(c *collector.Collector, opts []Option, exception func(codes.Code) bool) *options {
	o := &options{c: c, exception: exception}
	for _, set := range opts {
		set(o)
	}
	return o
}

// Exception sets the function that selects the codes that are exceptions. Without the option, or if the function is
// nil, the table in the documentation of the package applies. The function runs when a call has ended, and must be safe
// for concurrent use. A handler that panics or calls runtime.Goexit always counts as an exception.
// [collector.Options].Exception can reject any exception.
func Exception(is func(codes.Code) bool) Option {
	return func(o *options) {
		if is != nil {
			o.exception = is
		}
	}
}

// Skip selects calls that are handled or made as if this package were not used, such as the calls of
// grpc.health.v1.Health. Skipped calls are not counted, limits do not apply to them, and the calls that their handlers
// make are outermost. The function gets the full method of the call, and must be safe for concurrent use. It runs
// before the function of [Origin]. If it panics, the panic propagates. With several Skip options, a call is skipped if
// one of them selects it. (A filter of OpenTelemetry is the opposite: it selects the calls to count.)
func Skip(which func(ctx context.Context, method string) bool) Option {
	return func(o *options) { o.skip = append(o.skip, which) }
}

// skips reports whether a call is skipped. A nil Collector skips all calls.
func (o *options) skips(ctx context.Context, method string) bool {
	return o.c == nil || slices.ContainsFunc(o.skip, func(which func(context.Context, string) bool) bool {
		return which != nil && which(ctx, method)
	})
}

// Origin sets the function f that returns the origin of a call, the name of its caller. f runs once per call, with the
// context of the call, before limits are checked. It must be safe for concurrent use, and return few different names:
// [collector.Options].MaxOrigins limits how many names are counted separately. An empty name means no origin. If the
// option is given several times, the last one wins.
//
// f gets the context that the outer interceptors have passed to this interceptor. If f needs an identity that another
// interceptor adds to the context, install the other interceptor outside of this one.
func Origin(f func(ctx context.Context) string) Option {
	return func(o *options) { o.origin = f }
}

// OriginFromMetadata is [Origin] for callers that send their name, as the first value of the metadata key, such as
// "x-caller". The key is not case-sensitive. Calls without the key have no origin.
//
// Clients can send any name. The Collector limits the length and the number of the names. A [collector.Limit] on one
// origin only works for callers that send their real name.
func OriginFromMetadata(key string) Option {
	return Origin(func(ctx context.Context) string {
		if values := metadata.ValueFromIncomingContext(ctx, key); len(values) > 0 {
			return values[0]
		}
		return ""
	})
}
