package grpcstat_test

import (
	"context"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/grpcstat"
)

// One story for each defect that this package once had.

// ways are the ways in which a function may fail to return.
var ways = map[string]func(){
	"panic":  func() { panic("boom") },
	"Goexit": runtime.Goexit,
}

// alone runs f in a goroutine of its own until it ends, whichever way, and returns what it panicked with.
func alone(f func()) (panicked any) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { panicked = recover() }()
		f()
	}()
	<-done
	return panicked
}

// brokenError does not tell its status, as a nil pointer would not.
type brokenError struct{ end func() }

func (e brokenError) Error() string { return "broken" }

func (e brokenError) GRPCStatus() *status.Status {
	e.end()
	return nil
}

// An error whose GRPCStatus panicked, a nil pointer in it, left its call in flight: with a limit of two in flight, two such
// calls, and every later one was refused.
func TestRegressionErrorsThatPanicUsedALimitUp(t *testing.T) {
	for way, end := range ways {
		for side, call := range map[string]func(*collector.Collector, error) error{
			"UnaryServer": func(c *collector.Collector, err error) error {
				_, err = grpcstat.UnaryServer(c)(context.Background(), nil, &grpc.UnaryServerInfo{FullMethod: "a"},
					func(context.Context, any) (any, error) { return nil, err })
				return err
			},
			"StreamServer": func(c *collector.Collector, err error) error {
				return grpcstat.StreamServer(c)(1, fakeServer{}, &grpc.StreamServerInfo{FullMethod: "a"},
					func(any, grpc.ServerStream) error { return err })
			},
			"UnaryClient": func(c *collector.Collector, err error) error {
				return grpcstat.UnaryClient(c)(context.Background(), "a", nil, nil, nil,
					func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return err })
			},
			"StreamClient": func(c *collector.Collector, err error) error {
				_, err = openWith(context.Background(), c, nil, err)
				return err
			},
			"RecvMsg": func(c *collector.Collector, err error) error {
				stream, _ := openWith(context.Background(), c, &fakeClient{recv: func() error { return err }}, nil)
				return stream.RecvMsg(nil)
			},
		} {
			t.Run(side+" "+way, func(t *testing.T) {
				c := newCollector(t, collector.Options{}, collector.Limit{Resource: "*a", Grade: collector.Concurrency, Count: 2})
				for range 3 {
					if got := alone(func() { _ = call(c, brokenError{end}) }); way == "panic" && got != "boom" {
						t.Errorf("the panic that came out is %v", got)
					}
				}
				if n := counted(c, "a").InFlight(); n != 0 {
					t.Fatalf("%d in flight", n)
				}
				want(t, c, map[string]counts{"a": {pass: 3, exception: 3}})
			})
		}
	}
}

// fakeServer is a stream that has a context alone.
type fakeServer struct{ grpc.ServerStream }

func (fakeServer) Context() context.Context { return context.Background() }

// fakeClient is a stream that does in each method what it is told.
type fakeClient struct {
	grpc.ClientStream
	recv, send, closing, header func() error
}

func (s *fakeClient) RecvMsg(any) error            { return s.recv() }
func (s *fakeClient) SendMsg(any) error            { return s.send() }
func (s *fakeClient) CloseSend() error             { return s.closing() }
func (s *fakeClient) Header() (metadata.MD, error) { return nil, s.header() }

// openWith opens a stream by a client that counts. Interceptors further in make it.
func openWith(ctx context.Context, c *collector.Collector, stream grpc.ClientStream, err error) (grpc.ClientStream, error) {
	return grpcstat.StreamClient(c)(ctx, &grpc.StreamDesc{ServerStreams: true}, nil, "a",
		func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
			return stream, err
		})
}

// A stream of an interceptor further in that panicked, as one with a message that cannot be encoded does, left its call in
// flight until the connection was closed.
func TestRegressionStreamsThatPanicStayedInFlight(t *testing.T) {
	for way, end := range ways {
		broken := func() error { end(); return nil }
		for method, use := range map[string]func(grpc.ClientStream){
			"RecvMsg":   func(s grpc.ClientStream) { _ = s.RecvMsg(nil) },
			"SendMsg":   func(s grpc.ClientStream) { _ = s.SendMsg(nil) },
			"CloseSend": func(s grpc.ClientStream) { _ = s.CloseSend() },
			"Header":    func(s grpc.ClientStream) { _, _ = s.Header() },
		} {
			t.Run(method+" "+way, func(t *testing.T) {
				c := newCollector(t, collector.Options{})
				got := alone(func() {
					stream, err := openWith(context.Background(), c, &fakeClient{recv: broken, send: broken, closing: broken, header: broken}, nil)
					if err != nil {
						t.Error(err)
					}
					use(stream)
				})
				if way == "panic" && got != "boom" {
					t.Errorf("the panic that came out is %v", got)
				}
				if n := counted(c, "a").InFlight(); n != 0 {
					t.Fatalf("%d in flight", n)
				}
				want(t, c, map[string]counts{"a": {pass: 1, exception: 1}})
			})
		}
	}
}

// A stream that an interceptor further in left out, without an error, was in flight until its context ended, and what the
// caller got was a stream.
func TestRegressionAStreamThatIsNil(t *testing.T) {
	c := newCollector(t, collector.Options{})
	if stream, err := openWith(context.Background(), c, nil, nil); stream != nil || err != nil {
		t.Errorf("%v, %v", stream, err)
	}
	if n := counted(c, "a").InFlight(); n != 0 {
		t.Fatalf("%d in flight", n)
	}
	want(t, c, map[string]counts{"a": {pass: 1, exception: 1}})
}

// noDone is a context of somebody's own that does not work.
type noDone struct {
	context.Context
	end func()
}

func (c noDone) Done() <-chan struct{} { c.end(); return nil }

// A context that panicked when it was watched left a client's stream in flight.
func TestRegressionAContextThatPanics(t *testing.T) {
	for way, end := range ways {
		c := newCollector(t, collector.Options{})
		alone(func() { _, _ = openWith(noDone{context.Background(), end}, c, &fakeClient{}, nil) })
		if n := counted(c, "a").InFlight(); n != 0 {
			t.Errorf("%s: %d in flight", way, n)
		}
	}
}

// The process ended with a stream whose deadline passed while nobody read it, if the function that says what is an
// exception panicked: it ran in a goroutine of the context's, where nobody can recover.
func TestRegressionAnExceptionEndedTheProcess(t *testing.T) {
	for way, end := range ways {
		for _, place := range []string{"Exception", "ExceptionClass"} {
			t.Run(place+" "+way, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					at := func(here string) {
						if here == place {
							end()
						}
					}
					c := newCollector(t, collector.Options{
						Exception:      func(error) bool { at("Exception"); return true },
						ExceptionClass: func(error) string { at("ExceptionClass"); return "" },
					})
					ctx, cancel := context.WithTimeout(t.Context(), time.Second)
					defer cancel()
					if _, err := openWith(ctx, c, &fakeClient{}, nil); err != nil {
						t.Fatal(err)
					}
					<-ctx.Done()
					synctest.Wait()
					want(t, c, map[string]counts{"a": {pass: 1, exception: 1}})
				})
			})
		}
	}
}

// A function for origins that does not return has nothing in flight.
func TestAnOriginThatPanicsIsNoCall(t *testing.T) {
	for way, end := range ways {
		c := newCollector(t, collector.Options{})
		intercept := grpcstat.UnaryServer(c, grpcstat.Origin(func(context.Context) string { end(); return "" }))
		got := alone(func() {
			_, _ = intercept(context.Background(), nil, &grpc.UnaryServerInfo{FullMethod: "a"}, func(context.Context, any) (any, error) {
				t.Error("the handler has run")
				return nil, nil
			})
		})
		if way == "panic" && got != "boom" {
			t.Errorf("the panic that came out is %v", got)
		}
		want(t, c, nil)
	}
}
