package grpcstat

import (
	"context"

	"google.golang.org/grpc/metadata"
)

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
