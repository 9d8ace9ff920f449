package grpcstat

import (
	"context"
	"errors"
	"io"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/windowstat/windowstat/collector"
)

// UnaryClient counts the unary calls of a client. A call that a limit refuses is not sent. Its error wraps
// [collector.ErrBlocked]. A nil Collector counts nothing.
//
// An interceptor is safe for concurrent use, and any number of clients can share one. It costs as much as
// [collector.Collector.Enter].
func UnaryClient(c *collector.Collector, opts ...Option) grpc.UnaryClientInterceptor {
	o := apply(c, opts, clientFailed)
	return func(
		ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
		invoker grpc.UnaryInvoker, opts ...grpc.CallOption,
	) (err error) {
		if o.skips(ctx, method) {
			return invoker(ctx, method, req, reply, cc, opts...)
		}
		ctx, entry, err := c.Enter(ctx, clientName(method), collector.Outbound())
		if err != nil {
			return refusal{err}
		}
		defer func() { o.exit(&entry, err) }()
		err = collector.ErrPanicked // replaced when invoker returns
		return invoker(ctx, method, req, reply, cc, opts...)
	}
}

// clientName returns the resource of a client's call. The prefix distinguishes it from the resource of a server's call,
// because a gateway serves and calls the same method.
func clientName(method string) string { return "client " + method }

// StreamClient counts each stream of a client as one call. The call ends with the first of these events:
//
//	RecvMsg returns an error, including io.EOF
//	RecvMsg returns the only message of a response that has one message
//	SendMsg, CloseSend or Header returns an error other than io.EOF
//	the context of the stream ends
//	the connection of the stream is closed
//
// A stream that a limit refuses is not opened. A nil Collector counts nothing.
//
// The interceptor costs as much as [UnaryClient], plus a few allocations for observing these events.
func StreamClient(c *collector.Collector, opts ...Option) grpc.StreamClientInterceptor {
	o := apply(c, opts, clientFailed)
	return func(
		ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
		streamer grpc.Streamer, opts ...grpc.CallOption,
	) (_ grpc.ClientStream, err error) {
		if o.skips(ctx, method) {
			return streamer(ctx, desc, cc, method, opts...)
		}
		ctx, entry, err := c.Enter(ctx, clientName(method), collector.Outbound())
		if err != nil {
			return nil, refusal{err}
		}
		s := &clientStream{options: o, entry: &entry, stopWait: func() bool { return false }}
		defer func() {
			switch {
			case err != nil:
				s.end(err)
			case s.ClientStream == nil:
				s.end(errNoStream)
			}
		}()
		err = collector.ErrPanicked // replaced when streamer returns
		s.single = !desc.ServerStreams
		s.stopWait = context.AfterFunc(ctx, func() { s.endInBackground(status.FromContextError(ctx.Err()).Err()) })
		// If the caller no longer reads the stream, the call ends when the connection is closed. gRPC calls the
		// function of OnFinish at the end of each attempt to send the call. While the connection is open, ignore the
		// end of an attempt, because inner interceptors may start another attempt.
		opts = append(slices.Clip(opts), grpc.OnFinish(func(err error) {
			if cc.GetState() == connectivity.Shutdown {
				s.stopWait()
				s.endInBackground(err)
			}
		}))
		stream, err := streamer(ctx, desc, cc, method, opts...)
		if err != nil || stream == nil {
			return nil, err
		}
		s.ClientStream = stream
		return s, nil
	}
}

// errNoStream is the error of a call if an inner interceptor returned neither a stream nor an error.
var errNoStream = errors.New("grpcstat: interceptor returned neither a stream nor an error")

// clientStream is a stream that ends the entry of its call when the stream ends.
type clientStream struct {
	grpc.ClientStream
	*options
	entry    *collector.Entry
	single   bool        // the response is a single message
	stopWait func() bool // stops waiting for the end of the context; made by context.AfterFunc
}

// end ends the call with err, and stops waiting for the end of the context. Only the first call of end has an effect.
func (s *clientStream) end(err error) {
	s.stopWait()
	s.exit(s.entry, err)
}

// endInBackground ends the call with err. It runs in a goroutine of package context or of gRPC, where a panic in a
// function of [collector.Options] would terminate the process. It therefore recovers such a panic.
func (s *clientStream) endInBackground(err error) {
	defer func() { _ = recover() }()
	s.exit(s.entry, err)
}

func (s *clientStream) RecvMsg(m any) (err error) {
	defer func() {
		switch {
		case err == io.EOF, err == nil && s.single:
			s.end(nil)
		case err != nil:
			s.end(err)
		}
	}()
	err = collector.ErrPanicked // replaced when RecvMsg returns
	return s.ClientStream.RecvMsg(m)
}

func (s *clientStream) SendMsg(m any) (err error) {
	defer s.sent(&err)
	err = collector.ErrPanicked
	return s.ClientStream.SendMsg(m)
}

func (s *clientStream) CloseSend() (err error) {
	defer s.sent(&err)
	err = collector.ErrPanicked
	return s.ClientStream.CloseSend()
}

func (s *clientStream) Header() (_ metadata.MD, err error) {
	defer s.sent(&err)
	err = collector.ErrPanicked
	return s.ClientStream.Header()
}

// sent ends the call if *err, the result of SendMsg, CloseSend or Header, is an error other than io.EOF. After io.EOF
// the call continues until RecvMsg returns the status of the stream.
func (s *clientStream) sent(err *error) {
	if *err != nil && *err != io.EOF {
		s.end(*err)
	}
}
