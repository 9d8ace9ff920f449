package grpcstat_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/grpcstat"
)

// The methods of the test service: one of each kind.
const (
	unary  = "/grpc.testing.TestService/EmptyCall"
	output = "/grpc.testing.TestService/StreamingOutputCall"
	input  = "/grpc.testing.TestService/StreamingInputCall"
	duplex = "/grpc.testing.TestService/FullDuplexCall"
)

var methods = []string{unary, output, input, duplex}

// service runs handle in each method. Then the method unary sends a response, the methods output and input send one
// message, and the method duplex echoes messages until the client closes its side.
type service struct {
	pb.UnimplementedTestServiceServer
	handle func(ctx context.Context, method string) error
}

func (s *service) do(ctx context.Context) error {
	if s.handle == nil {
		return nil
	}
	method, _ := grpc.Method(ctx)
	return s.handle(ctx, method)
}

func (s *service) EmptyCall(ctx context.Context, _ *pb.Empty) (*pb.Empty, error) {
	return new(pb.Empty), s.do(ctx)
}

func (s *service) StreamingOutputCall(
	_ *pb.StreamingOutputCallRequest,
	stream pb.TestService_StreamingOutputCallServer,
) error {
	return errors.Join(s.do(stream.Context()), stream.Send(new(pb.StreamingOutputCallResponse)))
}

func (s *service) StreamingInputCall(stream pb.TestService_StreamingInputCallServer) error {
	for {
		if _, err := stream.Recv(); err == io.EOF {
			break
		} else if err != nil {
			return err
		}
	}
	if err := s.do(stream.Context()); err != nil {
		return err
	}
	return stream.SendAndClose(new(pb.StreamingInputCallResponse))
}

func (s *service) FullDuplexCall(stream pb.TestService_FullDuplexCallServer) error {
	if err := s.do(stream.Context()); err != nil {
		return err
	}
	for {
		if _, err := stream.Recv(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		if err := stream.Send(new(pb.StreamingOutputCallResponse)); err != nil {
			return err
		}
	}
}

// serve starts a server of the service, and returns its address.
func serve(t testing.TB, handle func(ctx context.Context, method string) error, opts ...grpc.ServerOption) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer(opts...)
	pb.RegisterTestServiceServer(srv, &service{handle: handle})
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	t.Cleanup(func() {
		srv.Stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

func dial(t testing.TB, address string, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// inServer and inClient return the options that install the interceptors.
func inServer(c *collector.Collector, opts ...grpcstat.Option) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(grpcstat.UnaryServer(c, opts...)),
		grpc.ChainStreamInterceptor(grpcstat.StreamServer(c, opts...)),
	}
}

func inClient(c *collector.Collector, opts ...grpcstat.Option) []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(grpcstat.UnaryClient(c, opts...)),
		grpc.WithChainStreamInterceptor(grpcstat.StreamClient(c, opts...)),
	}
}

// call calls one of the methods, reads the responses to their end, and returns the error of the call.
func call(ctx context.Context, conn *grpc.ClientConn, method string) error {
	client := pb.NewTestServiceClient(conn)
	switch method {
	case unary:
		_, err := client.EmptyCall(ctx, new(pb.Empty))
		return err
	case output:
		stream, err := client.StreamingOutputCall(ctx, new(pb.StreamingOutputCallRequest))
		if err != nil {
			return err
		}
		return drain(stream)
	case input:
		stream, err := client.StreamingInputCall(ctx)
		if err != nil {
			return err
		}
		_ = stream.Send(new(pb.StreamingInputCallRequest)) // on failure, CloseAndRecv returns the reason
		_, err = stream.CloseAndRecv()
		return err
	case duplex:
		stream, err := client.FullDuplexCall(ctx)
		if err != nil {
			return err
		}
		_ = stream.Send(new(pb.StreamingOutputCallRequest))
		_ = stream.CloseSend()
		return drain(stream)
	}
	panic(method)
}

// drain reads a stream to its end.
func drain(stream interface {
	Recv() (*pb.StreamingOutputCallResponse, error)
},
) error {
	for {
		if _, err := stream.Recv(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func newCollector(t testing.TB, o collector.Options, limits ...collector.Limit) *collector.Collector {
	t.Helper()
	c, err := collector.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SetLimits(limits); err != nil {
		t.Fatal(err)
	}
	return c
}

// counts holds the expected counts of a resource when no call is in flight.
type counts struct{ pass, block, exception int64 }

// one returns a map with the counts n for each method.
func one(n counts) map[string]counts {
	all := map[string]counts{}
	for _, method := range methods {
		all[method] = n
	}
	return all
}

// counted returns the resource of c for the calls of a method. If c counts the calls of a client, the name of this
// resource begins with "client ".
func counted(c *collector.Collector, method string) *collector.Resource {
	for _, r := range c.Resources() {
		if r.Name() == "client "+method {
			return r
		}
	}
	return c.Resource(method)
}

// want waits until no call is in flight, because a call may end shortly after its stream. Then it compares the counts
// of each resource with the parameter want. All passes must have completed.
func want(t *testing.T, c *collector.Collector, want map[string]counts) {
	t.Helper()
	got := map[string]string{}
	for _, r := range c.Seal().Resources {
		s := r.Snapshot(nil)
		if _, served := want[r.Name()]; served && counted(c, r.Name()) != r {
			continue // only a lookup in the test has created the resource
		}
		deadline := time.Now().Add(10 * time.Second)
		for ; s.InFlight > 0 && time.Now().Before(deadline); s = r.Snapshot(nil) {
			time.Sleep(time.Millisecond)
		}
		got[strings.TrimPrefix(r.Name(), "client ")] = fmt.Sprintf(
			"%d pass, %d block, %d complete, %d exception, %d in flight", s.Total.Pass, s.Total.Block,
			s.Total.Complete, s.Total.Exception, s.InFlight,
		)
	}
	for name, w := range want {
		if w := fmt.Sprintf("%d pass, %d block, %d complete, %d exception, 0 in flight", w.pass, w.block, w.pass,
			w.exception); got[name] != w {
			t.Errorf("%s: %s; want %s", name, got[name], w)
		}
	}
	if len(got) != len(want) {
		t.Errorf("resources %v, want %v", got, want)
	}
}

// flying waits until n calls of a method are in flight.
func flying(t *testing.T, c *collector.Collector, method string, n int64) {
	t.Helper()
	r := counted(c, method)
	deadline := time.Now().Add(10 * time.Second)
	for ; r.InFlight() != n && time.Now().Before(deadline); r = counted(c, method) {
		time.Sleep(time.Millisecond)
	}
	if got := r.InFlight(); got != n {
		t.Errorf("%s: %d in flight, want %d", method, got, n)
	}
}
