package grpcstat

import (
	"context"

	"google.golang.org/grpc"

	"github.com/windowstat/windowstat/collector"
)

const (
	// Entrance is the entrance of the calls that a server receives. Calls that the handlers of these calls make have
	// the same entrance.
	Entrance = "grpc"
	// Unmatched is the resource of streams without a registered method, because clients can invent the names of such
	// methods. grpc.UnknownServiceHandler handles these streams. Streams of a service that was registered without an
	// implementation are counted as Unmatched, too.
	Unmatched = "unmatched"
)

// UnaryServer counts the unary calls of a server. A call that a limit refuses ends before the handler runs. Its error
// wraps [collector.ErrBlocked], and has a gRPC status. A nil Collector counts nothing.
//
// An interceptor is safe for concurrent use, and any number of servers can share one. It costs as much as
// [collector.Collector.Enter] plus the function of [Origin]. Outer interceptors are not part of the response time, and
// also run for refused calls.
func UnaryServer(c *collector.Collector, opts ...Option) grpc.UnaryServerInterceptor {
	o := apply(c, opts, serverFailed)
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any,
		err error,
	) {
		if o.skips(ctx, info.FullMethod) {
			return handler(ctx, req)
		}
		ctx, entry, err := o.enter(ctx, info.FullMethod)
		if err != nil {
			return nil, refusal{err}
		}
		defer func() { o.exit(&entry, err) }()
		err = collector.ErrPanicked // replaced when handler returns
		return handler(ctx, req)
	}
}

// StreamServer counts each stream of a server as one call. The call lasts until the handler returns. In all other
// respects StreamServer counts calls as [UnaryServer] does. A nil Collector counts nothing.
func StreamServer(c *collector.Collector, opts ...Option) grpc.StreamServerInterceptor {
	o := apply(c, opts, serverFailed)
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo,
		handler grpc.StreamHandler,
	) (err error) {
		if o.skips(stream.Context(), info.FullMethod) {
			return handler(srv, stream)
		}
		method := info.FullMethod
		if srv == nil {
			method = Unmatched
		}
		ctx, entry, err := o.enter(stream.Context(), method)
		if err != nil {
			return refusal{err}
		}
		defer func() { o.exit(&entry, err) }()
		err = collector.ErrPanicked // replaced when handler returns
		return handler(srv, &serverStream{stream, ctx})
	}
}

// enter records the start of an inbound call of a server's method.
func (o *options) enter(ctx context.Context, method string) (context.Context, collector.Entry, error) {
	with := []collector.CallOption{collector.Inbound(), collector.Entrance(Entrance)}
	if o.origin != nil {
		if name := o.origin(ctx); name != "" {
			with = append(with, collector.Origin(name))
		}
	}
	return o.c.Enter(ctx, method, with...)
}

// serverStream is a stream with the context that Enter returned. Calls that the handler makes with this context are
// nested below the call of the stream.
type serverStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *serverStream) Context() context.Context { return s.ctx }
