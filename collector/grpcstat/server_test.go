package grpcstat_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/grpcstat"
)

func TestEveryCallCountsOnceOnEachSide(t *testing.T) {
	server, client := newCollector(t, collector.Options{}), newCollector(t, collector.Options{})
	conn := dial(t, serve(t, nil, inServer(server)...), inClient(client)...)
	for _, method := range methods {
		for range 3 {
			if err := call(t.Context(), conn, method); err != nil {
				t.Errorf("%s: %v", method, err)
			}
		}
	}
	want(t, server, one(counts{pass: 3}))
	want(t, client, one(counts{pass: 3}))

	if n := server.Inbound().Snapshot(nil).Total.Complete; n != 12 {
		t.Errorf("%d calls came into the server", n)
	}
	if n := client.Inbound().Snapshot(nil).Total.Complete; n != 0 {
		t.Errorf("%d calls came into the client", n)
	}
	for _, method := range methods {
		for entrance, view := range server.Resource(method).Entrances() {
			if n := view.Snapshot(nil).Total.Complete; entrance != grpcstat.Entrance || n != 3 {
				t.Errorf("%s: %d calls by the entrance %s", method, n, entrance)
			}
		}
	}
}

// recovering returns interceptors that recover panics, because gRPC itself does not recover panics.
func recovering() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(
			func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (_ any, err error) {
				defer func() { err = fmt.Errorf("recovered: %v", recover()) }()
				return next(ctx, req)
			},
		),
		grpc.ChainStreamInterceptor(
			func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
				defer func() { err = fmt.Errorf("recovered: %v", recover()) }()
				return next(srv, stream)
			},
		),
	}
}

func TestPanicsAreExceptionsAndPropagate(t *testing.T) {
	var seen atomic.Int64
	c := newCollector(t, collector.Options{ExceptionClass: func(err error) string {
		if err == collector.ErrPanicked {
			seen.Add(1)
		}
		return ""
	}})
	boom := func(context.Context, string) error { panic("boom") }
	conn := dial(t, serve(t, boom, append(recovering(), inServer(c)...)...))
	for _, method := range methods {
		if err := call(t.Context(), conn, method); status.Convert(err).Message() != "recovered: boom" {
			t.Errorf("%s: %v", method, err)
		}
	}
	want(t, c, one(counts{pass: 1, exception: 1}))
	if n := seen.Load(); n != 4 {
		t.Errorf("%d errors were ErrPanicked", n)
	}
}

func TestGoexitEndsTheCall(t *testing.T) {
	c := newCollector(t, collector.Options{})
	intercept := grpcstat.UnaryServer(c)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = intercept(
			context.Background(),
			nil,
			&grpc.UnaryServerInfo{FullMethod: unary},
			func(context.Context, any) (any, error) {
				runtime.Goexit()
				return nil, nil
			},
		)
	}()
	<-done
	want(t, c, map[string]counts{unary: {pass: 1, exception: 1}})
}

// sketch returns the call tree below n as one line of text.
func sketch(n *collector.TreeNode) string {
	s := strings.ReplaceAll(n.Name(), "/grpc.testing.TestService/", "")
	if list := n.Children(); len(list) > 0 {
		var names []string
		for _, child := range list {
			names = append(names, sketch(child))
		}
		s += "(" + strings.Join(names, " ") + ")"
	}
	return s
}

func TestNestedCallsAreBelowTheHandler(t *testing.T) {
	c, behind := newCollector(t, collector.Options{}), newCollector(t, collector.Options{})
	back := dial(t, serve(t, nil, inServer(behind)...), inClient(c)...)
	below := map[string]string{unary: duplex, output: unary, input: output}
	front := dial(t, serve(t, func(ctx context.Context, method string) error {
		ctx, entry, err := c.Enter(ctx, "load "+method[len(method)-10:])
		if err != nil {
			return err
		}
		defer entry.End(&err)
		if method == duplex {
			return nil
		}
		err = call(ctx, back, below[method])
		return err
	}, inServer(c, grpcstat.OriginFromMetadata("x-caller"))...))
	for _, method := range methods {
		if err := call(metadata.AppendToOutgoingContext(t.Context(), "x-caller", "shop"), front, method); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
	// A method that the process serves and calls has two resources.
	const tree = "machine-root(grpc(" +
		"EmptyCall(load /EmptyCall(client FullDuplexCall)) " +
		"FullDuplexCall(load DuplexCall) " +
		"StreamingInputCall(load gInputCall(client StreamingOutputCall)) " +
		"StreamingOutputCall(load OutputCall(client EmptyCall))))"
	if got := sketch(c.Tree()); got != tree {
		t.Errorf("the tree is\n%s\nwant\n%s", got, tree)
	}
	if got := sketch(behind.Tree()); got != "machine-root(grpc(EmptyCall FullDuplexCall StreamingOutputCall))" {
		t.Errorf("the tree behind is %s", got)
	}
	// A request counts once in the process, and the origin is not passed on to other services.
	if n := c.Tree().View().Snapshot(nil).Total.Pass; n != 4 {
		t.Errorf("%d requests", n)
	}
	shop, rest := c.Resource(
		unary,
	).Origin(
		"shop",
	).Snapshot(
		nil,
	).Total.Pass, c.Resource(
		"client "+unary,
	).Origin(
		"",
	).Snapshot(
		nil,
	).Total.Pass
	if shop != 1 || rest != 1 {
		t.Errorf("%d calls by shop, %d by nobody", shop, rest)
	}
}

// Clients can invent names of methods, so calls of unknown methods must not create resources.
func TestUnknownMethodsCreateNoResources(t *testing.T) {
	c := newCollector(t, collector.Options{})
	echo := grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		if err := stream.RecvMsg(new(pb.Empty)); err != nil {
			return err
		}
		return stream.SendMsg(new(pb.Empty))
	})
	with, without := dial(t, serve(t, nil, append(inServer(c), echo)...)), dial(t, serve(t, nil, inServer(c)...))
	for i := range 5 {
		method := fmt.Sprintf("/made.Up/Method%d", i)
		if err := with.Invoke(t.Context(), method, new(pb.Empty), new(pb.Empty)); err != nil {
			t.Error(err)
		}
		if err := without.Invoke(t.Context(), method, new(pb.Empty), new(pb.Empty)); status.Code(
			err,
		) != codes.Unimplemented {
			t.Error(err)
		}
	}
	want(t, c, map[string]counts{grpcstat.Unmatched: {pass: 5}})
}

func TestAStreamIsInFlightUntilItsHandlerReturns(t *testing.T) {
	c := newCollector(t, collector.Options{})
	conn := dial(t, serve(t, nil, inServer(c)...))
	stream, err := pb.NewTestServiceClient(conn).FullDuplexCall(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if err := stream.Send(new(pb.StreamingOutputCallRequest)); err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		flying(t, c, duplex, 1)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != io.EOF {
		t.Error(err)
	}
	want(t, c, map[string]counts{duplex: {pass: 1}})
}

func TestNilCollector(t *testing.T) {
	asked := grpcstat.Origin(func(context.Context) string { t.Error("the function of Origin ran"); return "" })
	conn := dial(t, serve(t, nil, inServer(nil, asked)...), inClient(nil)...)
	for _, method := range methods {
		if err := call(t.Context(), conn, method); err != nil {
			t.Errorf("%s: %v", method, err)
		}
	}
	failing := dial(
		t,
		serve(t, func(context.Context, string) error { return status.Error(codes.NotFound, "no") }, inServer(nil)...),
		inClient(nil)...)
	for _, method := range methods {
		if err := call(t.Context(), failing, method); status.Code(err) != codes.NotFound {
			t.Errorf("%s: %v", method, err)
		}
	}
}

// A server counts a stream from the arrival of its headers, and a unary call from the arrival of its request. Each call
// here is canceled before its first message. A stream is counted nevertheless: it passes and
// completes, and does not count as an exception, although its method never ran. A unary call is not counted.
func TestAStreamIsCountedBeforeItsFirstMessage(t *testing.T) {
	var ran atomic.Int64
	server, client := newCollector(t, collector.Options{}), newCollector(t, collector.Options{})
	conn := dial(
		t,
		serve(t, func(context.Context, string) error { ran.Add(1); return nil }, inServer(server)...),
		inClient(client)...)
	for _, method := range []string{output, input, unary} {
		ctx, cancel := context.WithCancel(t.Context())
		stream, err := conn.NewStream(
			ctx,
			&grpc.StreamDesc{StreamName: "x", ServerStreams: method == output, ClientStreams: method == input},
			method,
		)
		if err != nil {
			t.Fatal(err)
		}
		if method != unary {
			flying(t, server, method, 1)
		}
		cancel()
		if err := stream.RecvMsg(nil); status.Code(err).String() != "Canceled" {
			t.Errorf("%s: %v", method, err)
		}
	}
	want(t, server, map[string]counts{output: {pass: 1}, input: {pass: 1}})
	want(t, client, map[string]counts{output: {pass: 1}, input: {pass: 1}, unary: {pass: 1}})
	if n := ran.Load(); n != 0 {
		t.Errorf("%d methods ran", n)
	}
	if err := call(t.Context(), conn, unary); err != nil || ran.Load() != 1 {
		t.Errorf("%v after %d methods", err, ran.Load())
	}
	want(t, server, map[string]counts{output: {pass: 1}, input: {pass: 1}, unary: {pass: 1}})
}
