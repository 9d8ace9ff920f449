package grpcstat

import (
	"context"
	"slices"

	"google.golang.org/grpc/codes"

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
