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

// Each test in this file covers a defect that package grpcstat had.

// ways lists functions that do not return normally.
var ways = map[string]func(){
	"panic":  func() { panic("boom") },
	"Goexit": runtime.Goexit,
}

// alone runs f in a separate goroutine until it ends, and returns the value that it panicked with.
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

// brokenError is an error whose method GRPCStatus calls the function end. This function panics, as a method of a nil
// pointer does, or ends its goroutine.
type brokenError struct{ end func() }

func (e brokenError) Error() string { return "broken" }

func (e brokenError) GRPCStatus() *status.Status {
	e.end()
	return nil
}

// Regression: an error whose GRPCStatus panicked, such as a nil pointer, left its call in flight. With a concurrency
// limit of two, all calls after two such calls were refused.
func TestRegressionErrorsThatPanicExhaustedALimit(t *testing.T) {
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
				c := newCollector(
					t,
					collector.Options{},
					collector.Limit{Resource: "*a", Grade: collector.Concurrency, Count: 2},
				)
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

// fakeServer is a server stream. Its only working method is Context.
type fakeServer struct{ grpc.ServerStream }

func (fakeServer) Context() context.Context { return context.Background() }

// fakeClient is a client stream whose methods run the given functions.
type fakeClient struct {
	grpc.ClientStream
	recv, send, closing, header func() error
}

func (s *fakeClient) RecvMsg(any) error            { return s.recv() }
func (s *fakeClient) SendMsg(any) error            { return s.send() }
func (s *fakeClient) CloseSend() error             { return s.closing() }
func (s *fakeClient) Header() (metadata.MD, error) { return nil, s.header() }

// openWith opens a stream through the client interceptor. stream and err are the results of the inner interceptor.
func openWith(
	ctx context.Context, c *collector.Collector, stream grpc.ClientStream, err error,
) (grpc.ClientStream, error) {
	return grpcstat.StreamClient(c)(
		ctx,
		&grpc.StreamDesc{ServerStreams: true},
		nil,
		"a",
		func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream,
			error,
		) {
			return stream, err
		},
	)
}

// Regression: if a method of an inner interceptor's stream panicked, for example for a message that cannot be encoded,
// the call stayed in flight until the connection was closed.
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
					stream, err := openWith(
						context.Background(),
						c,
						&fakeClient{recv: broken, send: broken, closing: broken, header: broken},
						nil,
					)
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

// Regression: if an inner interceptor returned neither a stream nor an error, the call stayed in flight until its
// context ended, and the caller got a stream.
func TestRegressionNilStream(t *testing.T) {
	c := newCollector(t, collector.Options{})
	if stream, err := openWith(context.Background(), c, nil, nil); stream != nil || err != nil {
		t.Errorf("%v, %v", stream, err)
	}
	if n := counted(c, "a").InFlight(); n != 0 {
		t.Fatalf("%d in flight", n)
	}
	want(t, c, map[string]counts{"a": {pass: 1, exception: 1}})
}

// noDone is a user-defined context whose Done method panics.
type noDone struct {
	context.Context
	end func()
}

func (c noDone) Done() <-chan struct{} { c.end(); return nil }

// Regression: a context whose Done method panicked left the stream of a client in flight.
func TestRegressionAContextThatPanics(t *testing.T) {
	for way, end := range ways {
		c := newCollector(t, collector.Options{})
		alone(func() { _, _ = openWith(noDone{context.Background(), end}, c, &fakeClient{}, nil) })
		if n := counted(c, "a").InFlight(); n != 0 {
			t.Errorf("%s: %d in flight", way, n)
		}
	}
}

// Regression: after the deadline of an unread stream, a panic of Options.Exception or ExceptionClass ended the process.
// It happened in a goroutine of package context, where no caller can recover the panic.
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

// If the function of the option Origin panics or ends its goroutine, no call is in flight afterwards.
func TestOriginFunctionPanics(t *testing.T) {
	for way, end := range ways {
		c := newCollector(t, collector.Options{})
		intercept := grpcstat.UnaryServer(c, grpcstat.Origin(func(context.Context) string { end(); return "" }))
		got := alone(func() {
			_, _ = intercept(
				context.Background(),
				nil,
				&grpc.UnaryServerInfo{FullMethod: "a"},
				func(context.Context, any) (any, error) {
					t.Error("the handler has run")
					return nil, nil
				},
			)
		})
		if way == "panic" && got != "boom" {
			t.Errorf("the panic that came out is %v", got)
		}
		want(t, c, nil)
	}
}
