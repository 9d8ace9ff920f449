package grpcstat_test

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/windowstat/windowstat/collector"
)

// An inner interceptor may panic, retry, or fail in methods in which gRPC does not fail. The call is counted with the
// result of the inner interceptor.
func TestInnerInterceptors(t *testing.T) {
	errInner := errors.New("inner")
	failSend := func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string,
		next grpc.Streamer, opts ...grpc.CallOption,
	) (grpc.ClientStream, error) {
		stream, err := next(ctx, desc, cc, method, opts...)
		return failing{stream, errInner}, err
	}
	t.Run("panic", func(t *testing.T) {
		c := newCollector(t, collector.Options{})
		conn := dial(t, serve(t, nil), append(
			inClient(c),
			grpc.WithChainUnaryInterceptor(
				func(context.Context, string, any, any, *grpc.ClientConn, grpc.UnaryInvoker, ...grpc.CallOption) error {
					panic("boom")
				},
			),
			grpc.WithChainStreamInterceptor(
				func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, grpc.Streamer,
					...grpc.CallOption,
				) (grpc.ClientStream, error) {
					panic("boom")
				},
			),
		)...)
		for _, method := range methods {
			func() {
				defer func() {
					if recover() != "boom" {
						t.Errorf("%s: the panic did not go on", method)
					}
				}()
				_ = call(t.Context(), conn, method)
			}()
		}
		want(t, c, one(counts{pass: 1, exception: 1}))
	})
	for name, use := range map[string]func(grpc.ClientStream) error{
		"CloseSend": grpc.ClientStream.CloseSend,
		"Header": func(s grpc.ClientStream) error {
			_, err := s.Header()
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCollector(t, collector.Options{})
			conn := dial(t, serve(t, nil), append(inClient(c), grpc.WithChainStreamInterceptor(failSend))...)
			stream, err := pb.NewTestServiceClient(conn).FullDuplexCall(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if err := use(stream); err != errInner {
				t.Errorf("%v", err)
			}
			want(t, c, map[string]counts{duplex: {pass: 1, exception: 1}})
		})
	}
	t.Run("retry", func(t *testing.T) {
		c := newCollector(t, collector.Options{})
		var tries atomic.Int64
		moody := func(context.Context, string) error {
			if tries.Add(1)%3 != 0 {
				return status.Error(codes.Unavailable, "not now")
			}
			return nil
		}
		conn := dial(t, serve(t, moody), append(inClient(c), grpc.WithChainStreamInterceptor(again))...)
		stream, err := pb.NewTestServiceClient(conn).FullDuplexCall(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := stream.CloseSend(); err != nil {
			t.Error(err)
		}
		if n := counted(c, duplex).InFlight(); n != 1 {
			t.Errorf("%d in flight before the last attempt was read", n)
		}
		if err := drain(stream); err != nil || tries.Load() != 3 {
			t.Errorf("after %d tries %v", tries.Load(), err)
		}
		want(t, c, map[string]counts{duplex: {pass: 1}})
	})
}

// again is an interceptor that retries: it opens one stream after another, until a stream ends without an error.
func again(
	ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, next grpc.Streamer,
	opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	for {
		stream, err := next(ctx, desc, cc, method, opts...)
		if err != nil {
			return nil, err
		}
		if err := stream.CloseSend(); err != nil {
			return nil, err
		}
		if err := stream.RecvMsg(new(pb.StreamingOutputCallResponse)); err == io.EOF {
			return stream, nil
		}
	}
}

// failing is a stream whose CloseSend and Header fail.
type failing struct {
	grpc.ClientStream
	err error
}

func (s failing) CloseSend() error             { return s.err }
func (s failing) Header() (metadata.MD, error) { return nil, s.err }
