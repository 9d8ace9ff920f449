package prom_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
	"github.com/windowstat/windowstat/exporter/prom"
)

// With the option OpenTelemetry of the Collector, the page also has inbound requests under the names of OpenTelemetry.
func ExampleHandler_openTelemetry() {
	c, err := collector.New(collector.Options{OpenTelemetry: true})
	if err != nil {
		panic(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /users", func(http.ResponseWriter, *http.Request) {})
	httpstat.Mux(c, mux).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/users", nil))

	metrics, err := prom.Handler(c, prom.Options{})
	if err != nil {
		panic(err)
	}
	page := httptest.NewRecorder()
	metrics.ServeHTTP(page, httptest.NewRequest("GET", "/metrics", nil))
	count := "http_server_request_duration_seconds_count"
	for line := range strings.Lines(page.Body.String()) {
		if strings.HasPrefix(line, "http_server_active") || strings.HasPrefix(line, count) {
			fmt.Print(strings.ReplaceAll(line, ",", ",\n  "))
		}
	}
	// Output:
	// http_server_request_duration_seconds_count{error_type="",
	//   http_request_method="GET",
	//   http_response_status_code="200",
	//   http_route="/users"} 1
	// http_server_active_requests{http_request_method="GET",
	//   http_route="/users"} 0
}
