package grpcstat_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/grpcstat"
)

// The handler does nothing, so the result is the cost of the interceptor.
func BenchmarkUnaryServer(b *testing.B) {
	info := &grpc.UnaryServerInfo{FullMethod: unary}
	for name, tc := range map[string]struct {
		c   *collector.Collector
		err error
	}{
		"nil":     {},
		"ok":      {c: newCollector(b, collector.Options{})},
		"failed":  {c: newCollector(b, collector.Options{}), err: status.Error(codes.Internal, "x")},
		"refused": {c: newCollector(b, collector.Options{}, collector.Limit{Resource: "*"})},
	} {
		intercept := grpcstat.UnaryServer(tc.c)
		handler := func(context.Context, any) (any, error) { return nil, tc.err }
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				_, _ = intercept(context.Background(), nil, info, handler)
			}
		})
	}
}

func BenchmarkUnaryClient(b *testing.B) {
	invoke := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return nil }
	intercept := grpcstat.UnaryClient(newCollector(b, collector.Options{}))
	b.ReportAllocs()
	for b.Loop() {
		_ = intercept(context.Background(), unary, nil, nil, nil, invoke)
	}
}

// The server and the client run in this process. The difference between counted and bare is the cost of the
// interceptors of both for a complete call.
func BenchmarkCall(b *testing.B) {
	for name, c := range map[string]*collector.Collector{"bare": nil, "counted": newCollector(b, collector.Options{})} {
		conn := dial(b, serve(b, nil, inServer(c)...), inClient(c)...)
		for kind, method := range map[string]string{"unary": unary, "stream": duplex} {
			b.Run(name+"/"+kind, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := call(b.Context(), conn, method); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
