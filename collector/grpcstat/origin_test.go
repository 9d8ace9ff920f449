package grpcstat_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/grpcstat"
)

func TestOriginFromMetadata(t *testing.T) {
	c := newCollector(t, collector.Options{}, collector.Limit{Resource: "*", Origin: "greedy", Count: 0})
	conn := dial(t, serve(t, nil, inServer(c, grpcstat.OriginFromMetadata("X-Caller"))...))
	for _, method := range methods {
		for _, tc := range []struct {
			with []string
			want codes.Code
		}{
			{nil, codes.OK},
			{[]string{"x-caller", ""}, codes.OK},
			{[]string{"x-caller", "shop", "x-caller", "greedy"}, codes.OK},
			{[]string{"X-CALLER", "greedy"}, codes.ResourceExhausted},
			{[]string{"x-caller", strings.Repeat("x", 10_000)}, codes.OK},
		} {
			ctx := metadata.AppendToOutgoingContext(t.Context(), tc.with...)
			if err := call(ctx, conn, method); status.Code(err) != tc.want {
				t.Errorf("%s with %.40q: %v", method, tc.with, err)
			}
		}
		var got []string
		for origin, view := range c.Resource(method).Origins() {
			total := view.Snapshot(nil).Total
			got = append(got, fmt.Sprintf("%.4s %d %d", origin, total.Pass, total.Block))
			if len(origin) > collector.MaxNameLength {
				t.Errorf("%s: an origin of %d bytes", method, len(origin))
			}
		}
		if want := []string{" 2 0", "gree 0 1", "shop 1 0", "xxxx 1 0"}; !slices.Equal(got, want) {
			t.Errorf("%s: origins %q, want %q", method, got, want)
		}
	}
}

// An outer interceptor may determine the caller. If the outer interceptor also enters a call with an origin, the inner
// call inherits this origin unless the option Origin sets another origin.
func TestOriginFromOuterInterceptor(t *testing.T) {
	type identity struct{}
	c := newCollector(t, collector.Options{})
	outer := grpc.ChainUnaryInterceptor(
		func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
			md, _ := metadata.FromIncomingContext(ctx)
			ctx, entry, _ := c.Enter(ctx, "outer", collector.Origin("front"))
			defer entry.Exit(nil)
			return next(context.WithValue(ctx, identity{}, strings.Join(md["user"], "")), req)
		},
	)
	who := grpcstat.Origin(func(ctx context.Context) string { return ctx.Value(identity{}).(string) })
	conn := dial(t, serve(t, nil, append([]grpc.ServerOption{outer}, inServer(c, who)...)...))
	for range 2 {
		if err := call(t.Context(), conn, unary); err != nil {
			t.Error(err)
		}
	}
	if err := call(metadata.AppendToOutgoingContext(t.Context(), "user", "ann"), conn, unary); err != nil {
		t.Error(err)
	}
	want(t, c, map[string]counts{"outer": {pass: 3}, unary: {pass: 3}})
	for origin, n := range map[string]int64{"front": 2, "ann": 1} {
		if got := counted(c, unary).Origin(origin).Snapshot(nil).Total.Pass; got != n {
			t.Errorf("%d calls by %s, want %d", got, origin, n)
		}
	}
}
