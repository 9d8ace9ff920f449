package prom_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/windowstat/windowstat/exporter/prom"
)

// A service that counts with client_golang exports every second of its metrics.
func ExampleServeSeconds() {
	registry, mux := prometheus.NewRegistry(), http.NewServeMux()
	requests := prometheus.NewCounter(prometheus.CounterOpts{Name: "requests_total"})
	registry.MustRegister(requests)

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	seconds, err := prom.ServeSeconds(ctx, registry, mux, prom.ServeOptions{})
	if err != nil {
		panic(err)
	}
	service := httptest.NewUnstartedServer(mux)
	service.Config.ConnState = seconds.ConnState
	service.Start()
	defer service.Close()
	for range 100 {
		requests.Inc()
		resp, err := http.Get(service.URL + "/metrics/seconds?window=10s")
		if err != nil {
			panic(err)
		}
		page, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if strings.Contains(string(page), "\npersecond_requests_total_increase ") {
			fmt.Println("the page has persecond_requests_total_increase, each sample with the time of its second")
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	// Output: the page has persecond_requests_total_increase, each sample with the time of its second
}
