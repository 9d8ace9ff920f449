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

// UnaryClient counts the unary calls that a client makes. Those that a limit refuses end at once, with
// [collector.ErrBlocked]. A nil Collector counts nothing.
//
// An interceptor is safe for concurrent use, and one will do for any number of clients. It costs what
// [collector.Collector.Enter] does.
func UnaryClient(c *collector.Collector, opts ...Option) grpc.UnaryClientInterceptor {
	o := apply(c, opts, clientFailed)
	return func(
		ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption,
	) (err error) {
		if o.skips(ctx, method) {
			return invoker(ctx, method, req, reply, cc, opts...)
		}
		ctx, entry, err := c.Enter(ctx, clientName(method), collector.Outbound())
		if err != nil {
			return refusal{err}
		}
		defer func() { o.exit(&entry, err) }()
		err = collector.ErrPanicked // unless it returns
		return invoker(ctx, method, req, reply, cc, opts...)
	}
}

// clientName is the resource of a client's calls: a process may serve the same method, as a gateway does.
func clientName(method string) string { return "client " + method }

// StreamClient counts the streams that a client opens: each is one call. It lasts until the stream has reported how it
// ended, which is an error from RecvMsg, io.EOF included, or the one message of a stream that has but one for an answer;
// or an error from SendMsg, other than io.EOF; or until its context ends or its connection is closed, whichever is
// first. One that a limit refuses is not opened. A nil Collector counts nothing.
//
// It costs what [UnaryClient] does, and a few allocations to watch all that.
func StreamClient(c *collector.Collector, opts ...Option) grpc.StreamClientInterceptor {
	o := apply(c, opts, clientFailed)
	return func(
		ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, opts ...grpc.CallOption,
	) (_ grpc.ClientStream, err error) {
		if o.skips(ctx, method) {
			return streamer(ctx, desc, cc, method, opts...)
		}
		ctx, entry, err := c.Enter(ctx, clientName(method), collector.Outbound())
		if err != nil {
			return nil, refusal{err}
		}
		s := &clientStream{options: o, entry: &entry, forget: func() bool { return false }}
		defer func() {
			switch {
			case err != nil:
				s.end(err)
			case s.ClientStream == nil:
				s.end(errNoStream)
			}
		}()
		err = collector.ErrPanicked // unless it returns
		s.one = !desc.ServerStreams
		s.forget = context.AfterFunc(ctx, func() { s.aside(status.FromContextError(ctx.Err()).Err()) })
		// A stream that is not read any more ends with its connection. Before that this is the end of an attempt only,
		// and interceptors between here and there may make another.
		opts = append(slices.Clip(opts), grpc.OnFinish(func(err error) {
			if cc.GetState() == connectivity.Shutdown {
				s.forget()
				s.aside(err)
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

// errNoStream is the error of a call whose stream an interceptor further in left out, without an error.
var errNoStream = errors.New("grpcstat: neither a stream nor an error")

// clientStream exits its entry when the stream ends.
type clientStream struct {
	grpc.ClientStream
	*options
	entry  *collector.Entry
	one    bool        // one message is the whole answer
	forget func() bool // the context
}

// end ends the call, with nothing more to wait for. Only the first end counts.
func (s *clientStream) end(err error) {
	s.forget()
	s.exit(s.entry, err)
}

// aside ends the call in a goroutine that is nobody's: of the context, or of gRPC. A panic of the functions that
// [collector.Options] have would end the process there. It ends with its goroutine.
func (s *clientStream) aside(err error) {
	defer func() { _ = recover() }()
	s.exit(s.entry, err)
}

func (s *clientStream) RecvMsg(m any) (err error) {
	defer func() {
		switch {
		case err == io.EOF, err == nil && s.one:
			s.end(nil)
		case err != nil:
			s.end(err)
		}
	}()
	err = collector.ErrPanicked // unless it returns
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

// sent ends the call if sending failed. With io.EOF it is RecvMsg that knows why.
func (s *clientStream) sent(err *error) {
	if *err != nil && *err != io.EOF {
		s.end(*err)
	}
}
