package exporter_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/windowstat/windowstat/collector/httpstat"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/push"
)

// A net/http service with all exporters gets SIGTERM during a request. The log contains the completion of the request.
func Example_service() {
	dir, url, mux, addr, pages, answered := exampleService()
	limits := filepath.Join(dir, "limits.yml")

	// begin service
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	x, err := exporter.New(exporter.Options{
		App:        "shop",
		LimitsFile: limits,
		Log:        metriclog.Options{Dir: dir},
		Push:       []push.Options{{URL: url}},
	})
	if err != nil {
		log.Fatal(err)
	}
	service := &http.Server{Addr: addr, Handler: httpstat.Mux(x.Collector, mux)}
	context.AfterFunc(ctx, func() { _ = service.Shutdown(context.Background()) })
	go service.ListenAndServe()
	err = x.ListenAndServe(ctx, pages) // until all calls in flight are counted, written and sent
	// end service

	<-answered
	fmt.Println(err, logged(dir, "shop", "GET /users/{id}"))
	// Output: <nil> 1 passed, 1 completed
}

// exampleService prepares the example: a directory with limits, a receiver, and a slow handler that sends SIGTERM to
// the process.
func exampleService() (dir, url string, mux *http.ServeMux, addr, pages string, answered chan struct{}) {
	dir = temporary()
	rules := []byte("limits: [{resource: GET /users/*, qps: 100}]")
	if err := os.WriteFile(filepath.Join(dir, "limits.yml"), rules, 0o600); err != nil {
		log.Fatal(err)
	}
	answered = make(chan struct{})
	addr, pages = freeAddress(), freeAddress()
	mux = http.NewServeMux()
	mux.HandleFunc("GET /users/{id}", func(w http.ResponseWriter, _ *http.Request) {
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
		time.Sleep(300 * time.Millisecond)
		fmt.Fprint(w, "a user")
	})
	go func() {
		defer close(answered)
		for {
			resp, err := http.Get("http://" + addr + "/users/17")
			if err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	return dir, receiver(), mux, addr, pages, answered
}

// freeAddress returns an unused address.
func freeAddress() string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // only the address is needed
	return l.Addr().String()
}

// temporary returns a directory for an example.
func temporary() string {
	dir, err := os.MkdirTemp("", "windowstat-example-")
	if err != nil {
		log.Fatal(err)
	}
	return dir
}

// receiver starts a server that accepts pushes.
func receiver() (url string) {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusNoContent)
	})).URL
}

// logged sums the calls of a resource in a log, and removes the log.
func logged(dir, app, resource string) string {
	rows, err := metriclog.Searcher{Dir: dir, App: app}.Search(metriclog.Query{})
	if err != nil {
		log.Fatal(err)
	}
	var pass, complete int64
	for row := range rows.All() {
		if row.Resource == resource {
			pass, complete = pass+row.Pass, complete+row.Success
		}
	}
	if err := errors.Join(rows.Err(), rows.Close(), os.RemoveAll(dir)); err != nil {
		log.Fatal(err)
	}
	return fmt.Sprintf("%d passed, %d completed", pass, complete)
}
