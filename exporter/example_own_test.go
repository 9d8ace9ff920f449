package exporter_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/windowstat/windowstat/collector/httpstat"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

// A service with its own mux and its own server.
func Example_ownServer() {
	dir := temporary()
	ctx, cancel := context.WithCancel(context.Background())
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hello", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "hello") })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	go func() { // a client that stops the service at the end
		defer cancel()
		for _, path := range []string{"/hello", "/internal/metrics", "/internal/metrics/seconds", "/internal/live/"} {
			resp, err := http.Get("http://" + listener.Addr().String() + path)
			if err != nil {
				log.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			fmt.Println(path, resp.StatusCode, err == nil && (len(body) > 0 || strings.HasSuffix(path, "seconds")))
			_ = resp.Body.Close()
		}
	}()

	// begin own
	x, err := exporter.New(exporter.Options{App: "shop", Log: metriclog.Options{Dir: dir}})
	if err != nil {
		log.Fatal(err)
	}
	mux.Handle("GET /internal/metrics", x.Metrics)
	mux.Handle("GET /internal/metrics/seconds", x.Seconds)
	mux.Handle("GET /internal/live/", x.Live) // its streams end at Shutdown
	server := &http.Server{
		Handler: httpstat.Mux(x.Collector, mux), ReadHeaderTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		ConnState: x.ConnState, // shows which responses were read
	}
	go server.Serve(listener)
	stop := x.Start()
	<-ctx.Done()
	grace, release := context.WithTimeout(context.Background(), 10*time.Second)
	defer release()
	x.Seconds.Save(grace) // while connections are open
	err = errors.Join(server.Shutdown(grace), stop())
	// end own

	fmt.Println(err, logged(dir, "shop", "GET /hello"))
	// Output:
	// /hello 200 true
	// /internal/metrics 200 true
	// /internal/metrics/seconds 200 true
	// /internal/live/ 200 true
	// <nil> 1 passed, 1 completed
}
