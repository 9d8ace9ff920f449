package grpcstat_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/windowstat/windowstat/collector"
)

func TestALimitRefusesBeforeTheHandlerRuns(t *testing.T) {
	c := newCollector(t, collector.Options{}, collector.Limit{Resource: "/grpc.testing.TestService/*", Count: 0})
	var ran atomic.Int64
	var inside, outside []error
	watch := []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(
			func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
				resp, err := next(ctx, req)
				outside = append(outside, err)
				return resp, err
			},
		),
		grpc.ChainStreamInterceptor(
			func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
				err := next(srv, stream)
				outside = append(outside, err)
				return err
			},
		),
	}
	handle := func(context.Context, string) error { ran.Add(1); return nil }
	conn := dial(t, serve(t, handle, append(watch, inServer(c)...)...))
	for _, method := range methods {
		err := call(t.Context(), conn, method)
		inside = append(inside, err)
		s := status.Convert(err)
		if text := s.Message(); s.Code() != codes.ResourceExhausted || !strings.Contains(text, method) ||
			!strings.Contains(text, "qps /grpc.testing") {
			t.Errorf("%s: %v", method, err)
		}
		if len(s.Details()) != 1 {
			t.Errorf("%s: details %v", method, s.Details())
		} else if info, ok := s.Details()[0].(*errdetails.RetryInfo); !ok ||
			info.RetryDelay.AsDuration() != time.Second {
			t.Errorf("%s: details %v", method, s.Details())
		}
	}
	want(t, c, one(counts{block: 1}))
	if ran.Load() != 0 {
		t.Errorf("%d handlers ran", ran.Load())
	}
	if len(outside) != len(methods) {
		t.Fatalf("errors %v, of %v", outside, inside)
	}
	for _, err := range outside {
		if !errors.Is(err, collector.ErrBlocked) {
			t.Errorf("an interceptor further out got %v", err)
		}
	}
}

func TestALimitRefusesBeforeTheCallIsSent(t *testing.T) {
	c := newCollector(t, collector.Options{}, collector.Limit{Resource: "*", Grade: collector.Concurrency, Count: 0})
	var ran atomic.Int64
	conn := dial(t, serve(t, func(context.Context, string) error { ran.Add(1); return nil }), inClient(c)...)
	for _, method := range methods {
		err := call(t.Context(), conn, method)
		var blocked *collector.BlockedError
		if !errors.Is(err, collector.ErrBlocked) || status.Code(err) != codes.ResourceExhausted ||
			!errors.As(err, &blocked) {
			t.Fatalf("%s: %v", method, err)
		}
		if blocked.Resource != "client "+method || err.Error() != blocked.Error() {
			t.Errorf("%s: %v", method, err)
		}
	}
	want(t, c, one(counts{block: 1}))
	if ran.Load() != 0 {
		t.Errorf("%d calls were sent", ran.Load())
	}
}
