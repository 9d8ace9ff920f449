package grpcstat_test

import (
	"context"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"
	"weak"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/windowstat/windowstat/collector"
)

// open opens a stream of the method duplex and receives the first response message.
func open(t *testing.T, ctx context.Context, conn *grpc.ClientConn) pb.TestService_FullDuplexCallClient {
	t.Helper()
	stream, err := pb.NewTestServiceClient(conn).FullDuplexCall(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(new(pb.StreamingOutputCallRequest)); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	return stream
}

// The call of a stream ends even if the client does not read the stream to its end.
func TestUnreadStreamsEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		end       func(stream pb.TestService_FullDuplexCallClient, conn *grpc.ClientConn, cancel func())
		timeout   time.Duration
		exception int64
	}{
		"cancelled": {
			end: func(_ pb.TestService_FullDuplexCallClient, _ *grpc.ClientConn, cancel func()) { cancel() },
		},
		"timed out": {
			end:       func(pb.TestService_FullDuplexCallClient, *grpc.ClientConn, func()) {},
			timeout:   time.Second,
			exception: 1,
		},
		"connection closed": {
			end: func(_ pb.TestService_FullDuplexCallClient, conn *grpc.ClientConn, _ func()) { conn.Close() },
		},
		"nothing to send": {
			end: func(stream pb.TestService_FullDuplexCallClient, _ *grpc.ClientConn, _ func()) {
				if err := stream.SendMsg("no message"); status.Code(err) != codes.Internal {
					t.Errorf("SendMsg: %v", err)
				}
			},
			exception: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			server, client := newCollector(t, collector.Options{}), newCollector(t, collector.Options{})
			conn := dial(t, serve(t, nil, inServer(server)...), inClient(client)...)
			ctx, cancel := context.WithCancel(context.Background())
			if tc.timeout > 0 {
				ctx, cancel = context.WithTimeout(context.Background(), tc.timeout)
			}
			t.Cleanup(cancel)
			stream := open(t, ctx, conn)
			flying(t, client, duplex, 1)
			flying(t, server, duplex, 1)
			tc.end(stream, conn, cancel)
			want(t, client, map[string]counts{duplex: {pass: 1, exception: tc.exception}})
			flying(t, server, duplex, 0)
		})
	}
}

// Several events can end a stream. Only the first of them ends the call.
func TestAStreamEndsOnce(t *testing.T) {
	c := newCollector(t, collector.Options{})
	conn := dial(t, serve(t, nil), inClient(c)...)
	ctx, cancel := context.WithCancel(t.Context())
	stream := open(t, ctx, conn)
	if err := stream.CloseSend(); err != nil {
		t.Error(err)
	}
	flying(t, c, duplex, 1) // the call goes on, because the server may still send messages
	for range 3 {
		if _, err := stream.Recv(); err != io.EOF {
			t.Error(err)
		}
	}
	flying(t, c, duplex, 0)
	cancel()
	if _, err := stream.Recv(); err == nil {
		t.Error("an answer after the end")
	}
	conn.Close()
	want(t, c, map[string]counts{duplex: {pass: 1}})
}

// A long-lived context does not keep references to streams that have ended.
func TestEndedStreamsAreReleased(t *testing.T) {
	type key struct{}
	conn := dial(t, serve(t, nil), inClient(newCollector(t, collector.Options{}))...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, method := range []string{output, input, duplex} {
		ballast := new([1 << 20]byte)
		gone := weak.Make(ballast)
		if err := call(context.WithValue(ctx, key{}, ballast), conn, method); err != nil {
			t.Error(err)
		}
		ballast = nil
		for deadline := time.Now().Add(10 * time.Second); gone.Value() != nil && time.Now().Before(deadline); {
			runtime.GC()
			time.Sleep(time.Millisecond)
		}
		if gone.Value() != nil {
			t.Errorf("%s: the context keeps a reference to the stream", method)
		}
	}
}

// If sending fails because the stream has ended, the call ends with the status that RecvMsg returns.
func TestAFailedSendWaitsForTheStatus(t *testing.T) {
	c := newCollector(t, collector.Options{})
	refuse := func(context.Context, string) error { return status.Error(codes.FailedPrecondition, "no") }
	conn := dial(t, serve(t, refuse), inClient(c)...)
	stream, err := pb.NewTestServiceClient(conn).FullDuplexCall(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		err = stream.Send(new(pb.StreamingOutputCallRequest))
	}
	if err != io.EOF {
		t.Errorf("Send: %v", err)
	}
	if n := counted(c, duplex).InFlight(); n != 1 {
		t.Errorf("%d in flight before the status was read", n)
	}
	if _, err := stream.Recv(); status.Code(err) != codes.FailedPrecondition {
		t.Errorf("Recv: %v", err)
	}
	want(t, c, map[string]counts{duplex: {pass: 1}})
}

// A stream with a single response message ends with this message. The call ends without a second read, even if its
// context never ends.
func TestSingleResponseEndsTheCall(t *testing.T) {
	c := newCollector(t, collector.Options{})
	conn := dial(t, serve(t, nil), inClient(c)...)
	stream, err := pb.NewTestServiceClient(conn).StreamingInputCall(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(new(pb.StreamingInputCallRequest)); err != nil {
		t.Fatal(err)
	}
	if n := counted(c, input).InFlight(); n != 1 {
		t.Errorf("%d in flight while sending", n)
	}
	if _, err := stream.CloseAndRecv(); err != nil {
		t.Fatal(err)
	}
	if n := counted(c, input).InFlight(); n != 0 {
		t.Errorf("%d in flight after the answer", n)
	}
	want(t, c, map[string]counts{input: {pass: 1}})
}

func TestACallThatCannotBeSent(t *testing.T) {
	c := newCollector(t, collector.Options{})
	address := serve(t, nil)
	conn := dial(t, address, inClient(c)...)
	conn.Close()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	open := dial(t, address, inClient(c)...)
	nobody := dial(t, "127.0.0.1:1", inClient(c)...)
	for _, method := range methods {
		if err := call(t.Context(), conn, method); status.Code(err) != codes.Canceled {
			t.Errorf("%s on a closed connection: %v", method, err)
		}
		if err := call(ended, open, method); status.Code(err) != codes.Canceled {
			t.Errorf("%s with a cancelled context: %v", method, err)
		}
		if err := call(t.Context(), nobody, method); status.Code(err) != codes.Unavailable {
			t.Errorf("%s to nobody: %v", method, err)
		}
		if err := call(metadata.AppendToOutgoingContext(t.Context(), "Bad Key", ""), open, method); status.Code(
			err,
		) != codes.Internal {
			t.Errorf("%s with bad metadata: %v", method, err)
		}
	}
	want(t, c, one(counts{pass: 4, exception: 2}))
}

// Streams end concurrently, by a timeout, a cancellation, a failed send, or without an error. When all streams have
// ended, all passes have completed, and no call is in flight.
func TestConcurrentStreamEnds(t *testing.T) {
	server, client := newCollector(t, collector.Options{}), newCollector(t, collector.Options{})
	conn := dial(t, serve(t, nil, inServer(server)...), inClient(client)...)
	const workers, each = 16, 60
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range each {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(1+rand.IntN(20))*time.Millisecond)
				stream, err := pb.NewTestServiceClient(conn).FullDuplexCall(ctx)
				if err != nil {
					cancel()
					continue
				}
				_ = stream.Send(new(pb.StreamingOutputCallRequest))
				switch rand.IntN(4) {
				case 0: // the timeout ends the stream
					time.AfterFunc(time.Second, cancel)
					continue
				case 1:
					go cancel()
					_ = drain(stream)
				case 2:
					_ = stream.CloseSend()
					_ = drain(stream)
				case 3:
					_ = stream.SendMsg("no message")
				}
				cancel()
			}
		})
	}
	wg.Wait()
	for _, c := range []*collector.Collector{client, server} {
		flying(t, c, duplex, 0)
	}
	s := counted(client, duplex).Snapshot(nil)
	if s.Total.Pass != workers*each || s.Total.Complete != s.Total.Pass {
		t.Errorf("%d of %d passed, %d completed", s.Total.Pass, workers*each, s.Total.Complete)
	}
	if s := counted(server, duplex).Snapshot(nil); s.Total.Complete != s.Total.Pass || s.Total.Pass == 0 {
		t.Errorf("%d passed in the server, %d completed", s.Total.Pass, s.Total.Complete)
	}
}

// Regression: a gateway that serves and calls the same method had a single resource for served and made calls, with
// twice the number of calls.
func TestAGatewayHasTwoResources(t *testing.T) {
	c := newCollector(t, collector.Options{})
	behind := dial(t, serve(t, nil), inClient(c)...)
	conn := dial(
		t,
		serve(t, func(ctx context.Context, method string) error { return call(ctx, behind, method) }, inServer(c)...),
	)
	if err := call(t.Context(), conn, unary); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{unary, "client " + unary} {
		if n := c.Resource(name).Snapshot(nil).Total.Complete; n != 1 {
			t.Errorf("%d calls of %q, want 1", n, name)
		}
	}
	if n := c.Inbound().Snapshot(nil).Total.Complete; n != 1 {
		t.Errorf("%d inbound calls, want 1", n)
	}
}
