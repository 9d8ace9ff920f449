package grpcstat

import (
	"context"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/windowstat/windowstat/collector"
)

// Option changes how calls are counted. A client takes [Exception] and [Skip]; who calls is a server's to know.
type Option func(*options)

type options struct {
	c         *collector.Collector
	origin    func(context.Context) string // nil without the option
	exception func(codes.Code) bool
	skip      []func(ctx context.Context, method string) bool
}

// apply applies the options, to those of a side that has its own rule for exceptions.
func apply(c *collector.Collector, opts []Option, exception func(codes.Code) bool) *options {
	o := &options{c: c, exception: exception}
	for _, set := range opts {
		set(o)
	}
	return o
}

// Exception tells which codes are exceptions, in the place of those in the package's table, which nil stands for. It is asked
// when a call has ended, and must be safe for concurrent use. What does not return is an exception whatever it says;
// [collector.Options].Exception can still say no.
func Exception(is func(codes.Code) bool) Option {
	return func(o *options) {
		if is != nil {
			o.exception = is
		}
	}
}

// Skip tells which calls are handled or made as if the package were not there, such as those of grpc.health.v1.Health: they are
// not counted, no limit is asked, and what they call is outermost. It is asked first, with the call's full method, and must be
// safe for concurrent use; if it panics, that goes on. Of several such options each can skip a call. (A filter of
// OpenTelemetry says the opposite: which ones to take.)
func Skip(which func(ctx context.Context, method string) bool) Option {
	return func(o *options) { o.skip = append(o.skip, which) }
}

// skips reports whether a call is not counted. A nil Collector counts none.
func (o *options) skips(ctx context.Context, method string) bool {
	return o.c == nil || slices.ContainsFunc(o.skip, func(which func(context.Context, string) bool) bool {
		return which != nil && which(ctx, method)
	})
}

// Origin names the caller: f is asked once for each call, before any limit is, with the call's context. It must be safe
// for concurrent use, and return few different names: [collector.Options] bound how many are kept apart. The empty one is
// no origin. Of several such options the last counts.
//
// The context is the one that interceptors further out made: where the origin is an identity that one of them
// establishes, this one goes after it.
func Origin(f func(ctx context.Context) string) Option {
	return func(o *options) { o.origin = f }
}

// OriginFromMetadata is [Origin] for callers that name themselves, by the first value of a key of the call's
// metadata, such as "x-caller"; case does not matter in a key. Without it there is no origin.
//
// Any client can send any name. The Collector bounds how long names are and how many, but a limit on one origin holds for
// those callers only that are honest about it.
func OriginFromMetadata(key string) Option {
	return Origin(func(ctx context.Context) string {
		if values := metadata.ValueFromIncomingContext(ctx, key); len(values) > 0 {
			return values[0]
		}
		return ""
	})
}
