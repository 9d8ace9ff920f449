package grpcstat

import (
	"context"

	"google.golang.org/grpc"

	"github.com/windowstat/windowstat/collector"
)

const (
	// Entrance is the entrance of the calls that a server takes, and so the context of all that they call.
	Entrance = "grpc"
	// Unmatched is the resource of streams that no method of the server matches, for grpc.UnknownServiceHandler: their
	// names are anybody's choice. So is it that of the streams of a service that was registered without an
	// implementation.
	Unmatched = "unmatched"
)

// UnaryServer counts the unary calls that a server takes. Those that a limit refuses end at once, with
// [collector.ErrBlocked] as a gRPC status. A nil Collector counts nothing.
//
// An interceptor is safe for concurrent use, and one will do for any number of servers. It costs what
// [collector.Collector.Enter] does, and what it takes to know the origin. Interceptors further out in the chain are not
// timed, and run for calls that are refused, too.
func UnaryServer(c *collector.Collector, opts ...Option) grpc.UnaryServerInterceptor {
	o := apply(c, opts, serverFailed)
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (resp any, err error) {
		if o.skips(ctx, info.FullMethod) {
			return handler(ctx, req)
		}
		ctx, entry, err := o.enter(ctx, info.FullMethod)
		if err != nil {
			return nil, refusal{err}
		}
		defer func() { o.exit(&entry, err) }()
		err = collector.ErrPanicked // unless it returns
		return handler(ctx, req)
	}
}

// StreamServer counts the streams that a server takes: each is one call, which lasts until the handler returns. All else
// is as [UnaryServer] has it. A nil Collector counts nothing.
func StreamServer(c *collector.Collector, opts ...Option) grpc.StreamServerInterceptor {
	o := apply(c, opts, serverFailed)
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
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
		err = collector.ErrPanicked // unless it returns
		return handler(srv, &serverStream{stream, ctx})
	}
}

// enter lets a call enter that came in.
func (o *options) enter(ctx context.Context, method string) (context.Context, collector.Entry, error) {
	with := []collector.CallOption{collector.Inbound(), collector.Entrance(Entrance)}
	if o.origin != nil {
		if name := o.origin(ctx); name != "" {
			with = append(with, collector.Origin(name))
		}
	}
	return o.c.Enter(ctx, method, with...)
}

// serverStream is a stream whose handler stands below its entry.
type serverStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s *serverStream) Context() context.Context { return s.ctx }
