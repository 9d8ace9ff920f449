package grpcstat_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/grpcstat"
)

// answered returns the number of calls by code. It waits until all calls have ended.
func answered(t *testing.T, c *collector.Collector) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	for _, r := range c.Seal().Resources {
		for deadline := time.Now().Add(10 * time.Second); r.InFlight() > 0 && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		for code, n := range r.View().Codes() {
			if n > 0 {
				all[code.String()] += n
			}
		}
	}
	return all
}

// Server and client count the same codes as a load tool, for each kind of method, under gRPC's names.
//
// Regression: two thousand calls that failed with NotFound were counted as 2000 passes and 0 exceptions, without their
// code.
func TestCodesEqualTheCountsOfALoadTool(t *testing.T) {
	server, client := newCollector(t, collector.Options{}), newCollector(t, collector.Options{})
	handle := func(ctx context.Context, _ string) error {
		md, _ := metadata.FromIncomingContext(ctx)
		answer := md.Get("answer")[0]
		if answer == "plain" {
			return errors.New("no status") // gRPC sends the code Unknown
		}
		code, err := strconv.Atoi(answer)
		return errors.Join(err, status.Error(codes.Code(code), "as asked"))
	}
	conn := dial(t, serve(t, handle, inServer(server)...), inClient(client)...)
	var mu sync.Mutex
	got := map[string]int64{}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 2))
			for range 100 {
				answer := strconv.Itoa(random.IntN(18)) // gRPC has no code 17
				if random.IntN(20) == 0 {
					answer = "plain"
				}
				err := call(
					metadata.AppendToOutgoingContext(t.Context(), "answer", answer),
					conn,
					methods[random.IntN(len(methods))],
				)
				code := status.Code(err).String()
				if status.Code(err) > codes.Unauthenticated {
					code = collector.OtherCode
				}
				mu.Lock()
				got[code]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if s := answered(t, client); !maps.Equal(s, got) {
		t.Errorf("the client has %v, the load tool %v", s, got)
	}
	if s := answered(t, server); !maps.Equal(s, got) {
		t.Errorf("the server has %v, the load tool %v", s, got)
	}
	if len(got) != 18 {
		t.Errorf("%d codes: %v", len(got), got)
	}
}

// A canceled call has the code that gRPC's library assigns to it. A call that panics has no code. A refused call does
// not complete, so it has no code.
func TestCodesOfAbortedCalls(t *testing.T) {
	c := newCollector(t, collector.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	conn := dial(t, serve(t, nil), inClient(c)...)
	if err := call(ctx, conn, unary); status.Code(err) != codes.Canceled {
		t.Error(err)
	}
	if got := answered(t, c); !maps.Equal(got, map[string]int64{"Canceled": 1}) {
		t.Errorf("cancelled: %v", got)
	}

	c = newCollector(t, collector.Options{})
	intercept := grpcstat.UnaryServer(c)
	func() {
		defer func() { _ = recover() }()
		_, _ = intercept(
			t.Context(),
			nil,
			&grpc.UnaryServerInfo{FullMethod: "a"},
			func(context.Context, any) (any, error) { panic("boom") },
		)
	}()
	if got := answered(t, c); !maps.Equal(got, map[string]int64{"": 1}) {
		t.Errorf("panicked: %v", got)
	}

	c = newCollector(t, collector.Options{})
	if err := c.SetLimits([]collector.Limit{{Resource: "*", Count: 0}}); err != nil {
		t.Fatal(err)
	}
	conn = dial(t, serve(t, nil, inServer(c)...))
	for _, method := range methods {
		if err := call(t.Context(), conn, method); status.Code(err) != codes.ResourceExhausted {
			t.Error(err)
		}
	}
	if got := answered(t, c); len(got) != 0 {
		t.Errorf("refused: %v", got)
	}
}

// Servers and clients have different rules for exceptions, and both support the option Exception.
func TestException(t *testing.T) {
	notOK := grpcstat.Exception(func(c codes.Code) bool { return c != codes.OK })
	for name, tc := range map[string]struct {
		code   codes.Code
		opts   []grpcstat.Option
		failed [2]bool // whether the call is an exception for the server and for the client
	}{
		"default": {codes.NotFound, nil, [2]bool{}},
		"nil": {
			codes.ResourceExhausted,
			[]grpcstat.Option{grpcstat.Exception(nil)},
			[2]bool{false, true},
		},
		"all but OK":         {codes.NotFound, []grpcstat.Option{notOK}, [2]bool{true, true}},
		"all but OK, and OK": {codes.OK, []grpcstat.Option{notOK}, [2]bool{}},
		"none": {
			codes.Internal,
			[]grpcstat.Option{grpcstat.Exception(func(codes.Code) bool { return false })},
			[2]bool{},
		},
	} {
		t.Run(name, func(t *testing.T) {
			sides := [2]*collector.Collector{newCollector(t, collector.Options{}), newCollector(t, collector.Options{})}
			handle := func(context.Context, string) error { return status.Error(tc.code, "as asked") }
			conn := dial(t, serve(t, handle, inServer(sides[0], tc.opts...)...), inClient(sides[1], tc.opts...)...)
			for _, method := range methods {
				if err := call(t.Context(), conn, method); status.Code(err) != tc.code {
					t.Errorf("%s: %v", method, err)
				}
			}
			for i, c := range sides {
				answered(t, c)
				for _, r := range c.Seal().Resources {
					if failed := r.Snapshot(nil).Total.Exception == 1; failed != tc.failed[i] {
						t.Errorf("%s, side %d: exception %t", r.Name(), i, failed)
					}
				}
			}
		})
	}
	c := newCollector(t, collector.Options{})
	intercept := grpcstat.UnaryServer(c, grpcstat.Exception(func(codes.Code) bool { panic("boom") }))
	func() {
		defer func() { _ = recover() }()
		_, _ = intercept(
			t.Context(),
			nil,
			&grpc.UnaryServerInfo{FullMethod: "a"},
			func(context.Context, any) (any, error) { return nil, nil },
		)
	}()
	if s := c.Resource("a").Snapshot(nil); s.Total.Exception != 1 || s.InFlight != 0 ||
		!maps.Equal(answered(t, c), map[string]int64{"OK": 1}) {
		t.Errorf("%+v", s)
	}
}

// Skipped calls are not counted on either side, and no limit refuses them.
func TestSkip(t *testing.T) {
	skip := []grpcstat.Option{
		grpcstat.Skip(func(_ context.Context, method string) bool { return method == unary || method == duplex }),
		grpcstat.Skip(nil),
		grpcstat.Skip(func(ctx context.Context, _ string) bool { return ctx.Value(skipped{}) != nil }),
	}
	sides := [2]*collector.Collector{newCollector(t, collector.Options{}), newCollector(t, collector.Options{})}
	conn := dial(t, serve(t, nil, inServer(sides[0], skip...)...), inClient(sides[1], skip...)...)
	for _, c := range sides {
		if err := c.SetLimits([]collector.Limit{
			{Resource: unary, Count: 0},
			{Resource: duplex, Count: 0},
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, method := range methods {
		if err := call(t.Context(), conn, method); err != nil && err != io.EOF {
			t.Errorf("%s: %v", method, err)
		}
	}
	if err := call(context.WithValue(t.Context(), skipped{}, true), conn, input); err != nil {
		t.Error(err)
	}
	for i, c := range sides {
		want := map[string]int64{"OK": 2}
		if i == 0 {
			want["OK"] = 3 // the server does not get the context value, and counts the skipped call
		}
		if got := answered(t, c); !maps.Equal(got, want) {
			t.Errorf("side %d: %v, want %v", i, got, want)
		}
	}
}

type skipped struct{}
