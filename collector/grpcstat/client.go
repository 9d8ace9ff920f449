package grpcstat

import (
	"context"
	"io"
	"slices"

	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/windowstat/windowstat/collector"
)

// UnaryClient counts the unary calls that a client makes. Those that a limit refuses end at once, with
// [collector.ErrBlocked]. A nil Collector counts nothing.
//
// An interceptor is safe for concurrent use, and one will do for any number of clients. It costs what
// [collector.Collector.Enter] does.
func UnaryClient(c *collector.Collector) grpc.UnaryClientInterceptor {
	if c == nil {
		return func(
			ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption,
		) error {
			return invoker(ctx, method, req, reply, cc, opts...)
		}
	}
	return func(
		ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption,
	) (err error) {
		ctx, entry, err := c.Enter(ctx, method, collector.Outbound())
		if err != nil {
			return refusal{err}
		}
		defer func() { entry.Exit(exception(err, clientFailed)) }()
		err = collector.ErrPanicked // unless it returns
		return invoker(ctx, method, req, reply, cc, opts...)
	}
}

// StreamClient counts the streams that a client opens: each is one call. It lasts until the stream has reported how it
// ended, which is an error from RecvMsg, io.EOF included, or the one message of a stream that has but one for an answer;
// or an error from SendMsg, other than io.EOF; or until its context ends or its connection is closed, whichever is
// first. One that a limit refuses is not opened. A nil Collector counts nothing.
//
// It costs what [UnaryClient] does, and a few allocations to watch all that.
func StreamClient(c *collector.Collector) grpc.StreamClientInterceptor {
	if c == nil {
		return func(
			ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption,
		) (grpc.ClientStream, error) {
			return streamer(ctx, desc, cc, method, opts...)
		}
	}
	return func(
		ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption,
	) (_ grpc.ClientStream, err error) {
		ctx, entry, err := c.Enter(ctx, method, collector.Outbound())
		if err != nil {
			return nil, refusal{err}
		}
		s := &clientStream{entry: entry, one: !desc.ServerStreams}
		s.forget = context.AfterFunc(ctx, func() { s.exit(status.FromContextError(ctx.Err()).Err()) })
		defer func() {
			if err != nil {
				s.end(err)
			}
		}()
		// A stream that is not read any more ends with its connection. Before that this is the end of an attempt only,
		// and interceptors between here and there may make another.
		opts = append(slices.Clip(opts), grpc.OnFinish(func(err error) {
			if cc.GetState() == connectivity.Shutdown {
				s.end(err)
			}
		}))
		err = collector.ErrPanicked // unless it returns
		if s.ClientStream, err = streamer(ctx, desc, cc, method, opts...); err != nil {
			return nil, err
		}
		return s, nil
	}
}

// clientStream exits its entry when the stream ends.
type clientStream struct {
	grpc.ClientStream
	entry  *collector.Entry
	one    bool        // one message is the whole answer
	forget func() bool // the context
}

func (s *clientStream) exit(err error) { s.entry.Exit(exception(err, clientFailed)) }

// end is exit with nothing more to wait for. Only the first of them counts.
func (s *clientStream) end(err error) {
	s.forget()
	s.exit(err)
}

func (s *clientStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	switch {
	case err == io.EOF, err == nil && s.one:
		s.end(nil)
	case err != nil:
		s.end(err)
	}
	return err
}

func (s *clientStream) SendMsg(m any) error { return s.sent(s.ClientStream.SendMsg(m)) }

func (s *clientStream) CloseSend() error { return s.sent(s.ClientStream.CloseSend()) }

func (s *clientStream) Header() (metadata.MD, error) {
	md, err := s.ClientStream.Header()
	return md, s.sent(err)
}

// sent ends the call if sending failed. With io.EOF it is RecvMsg that knows why.
func (s *clientStream) sent(err error) error {
	if err != nil && err != io.EOF {
		s.end(err)
	}
	return err
}
