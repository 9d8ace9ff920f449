package grpcstat_test

import (
	"context"
	"fmt"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/grpcstat"
)

func Example() {
	c, err := collector.New(collector.Options{})
	if err != nil {
		panic(err)
	}
	srv := grpc.NewServer(
		grpc.ChainUnaryInterceptor(grpcstat.UnaryServer(c)),
		grpc.ChainStreamInterceptor(grpcstat.StreamServer(c)),
	)
	healthpb.RegisterHealthServer(srv, health.NewServer())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go srv.Serve(l)
	defer srv.Stop()

	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	client := healthpb.NewHealthClient(conn)
	for range 3 {
		if _, err := client.Check(context.Background(), new(healthpb.HealthCheckRequest)); err != nil {
			panic(err)
		}
	}
	_, err = client.Check(context.Background(), &healthpb.HealthCheckRequest{Service: "nobody"})
	fmt.Println(status.Code(err))

	s := c.Resource("/grpc.health.v1.Health/Check").Snapshot(nil)
	fmt.Println(s.Total.Complete, "calls,", s.Total.Exception, "exceptions,", s.InFlight, "in flight")
	// Output:
	// NotFound
	// 4 calls, 0 exceptions, 0 in flight
}
