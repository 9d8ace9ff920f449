package e2e

import (
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
	"github.com/windowstat/windowstat/exporter/prom"
)

// otelQueries are the queries that dashboards for OpenTelemetry's HTTP and RPC metrics send: rates, errors, durations
// and requests in flight, as in Grafana's dashboards for services with OpenTelemetry SDKs. A dashboard has replaced its
// variables.
var otelQueries = []struct {
	expression string
	results    []string // label values
}{
	{
		`sum by (http_route, http_request_method) (
			rate(http_server_request_duration_seconds_count{job="shop"}[5m]))`,
		[]string{"/pay POST", "/users/{id} GET"},
	},
	{
		`sum(rate(http_server_request_duration_seconds_count{job="shop", http_response_status_code=~"5.."}[5m])) /
			sum(rate(http_server_request_duration_seconds_count{job="shop"}[5m]))`,
		[]string{""},
	},
	{
		`sum by (http_response_status_code) (
			increase(http_server_request_duration_seconds_count{job="shop"}[5m]))`,
		[]string{"200", "204", "500"},
	},
	{
		`sum by (error_type) (rate(http_server_request_duration_seconds_count{job="shop", error_type!=""}[5m]))`,
		[]string{"500"},
	},
	{
		`histogram_quantile(0.95, sum by (le, http_route) (
			rate(http_server_request_duration_seconds_bucket{job="shop"}[5m])))`,
		[]string{"/pay", "/users/{id}"},
	},
	{
		`histogram_quantile(0.95, sum by (http_route) (
			rate(http_server_request_duration_seconds{job="shop"}[5m])))`,
		[]string{"/pay", "/users/{id}"},
	},
	{
		`sum by (http_route) (rate(http_server_request_duration_seconds_sum{job="shop"}[5m])) /
			sum by (http_route) (rate(http_server_request_duration_seconds_count{job="shop"}[5m]))`,
		[]string{"/pay", "/users/{id}"},
	},
	{
		`sum by (le) (increase(http_server_request_duration_seconds_bucket{job="shop", le=~"0.005|[+]Inf"}[5m]))`,
		[]string{"+Inf", "0.005"},
	},
	{`sum by (http_request_method) (http_server_active_requests{job="shop"})`, []string{"GET", "POST"}},
	{
		`sum by (rpc_method) (
			rate(rpc_server_call_duration_seconds_count{job="shop", rpc_system_name="grpc"}[5m]))`,
		[]string{"shop.Cart/Add"},
	},
	{
		`sum by (rpc_response_status_code) (rate(rpc_server_call_duration_seconds_count{job="shop"}[5m])) > 0`,
		[]string{"INTERNAL", "OK"},
	},
	{
		`histogram_quantile(0.99, sum by (le, rpc_method) (
			rate(rpc_server_call_duration_seconds_bucket{job="shop"}[5m])))`,
		[]string{"shop.Cart/Add"},
	},
	{
		`sum by (rpc_method) (rate(rpc_server_call_duration_seconds_count{job="shop", error_type!=""}[5m])) /
			sum by (rpc_method) (rate(rpc_server_call_duration_seconds_count{job="shop"}[5m])) * 100 > 0`,
		[]string{"shop.Cart/Add"},
	},
}

// TestOpenTelemetryNames has a Prometheus scrape a service under OpenTelemetry's names. The queries of dashboards for
// these names have the right results. So have rules for the documented objective: Sloth records the quotient of its two
// queries for each window, and alerts on the share of the requests that failed.
func TestOpenTelemetryNames(t *testing.T) {
	t.Parallel()
	c, err := collector.New(collector.Options{OpenTelemetry: true})
	if err != nil {
		t.Fatal(err)
	}
	served := http.NewServeMux()
	served.HandleFunc("GET /users/{id}", func(w http.ResponseWriter, r *http.Request) {
		if r.PathValue("id") == "0" {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})
	served.HandleFunc("POST /pay", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) })
	shop := httpstat.Mux(c, served)
	rpc := func(code uint32) {
		_, e, err := c.Enter(t.Context(), "/shop.Cart/Add", collector.Inbound(), collector.Entrance("grpc"))
		if err != nil {
			t.Fatal(err)
		}
		e.ExitCode(nil, collector.GRPCCode(code))
	}
	// call makes 10 requests, 2 of which fail, and 4 calls, 1 of which fails.
	call := func() {
		for i := range 5 {
			shop.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/pay", nil))
			shop.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", fmt.Sprint("/users/", max(i-1, 0)), nil))
		}
		for i := range 4 {
			rpc(uint32(i / 3 * 13)) // Internal
		}
	}
	page, err := prom.Handler(c, prom.Options{})
	if err != nil {
		t.Fatal(err)
	}
	l := listen(t, "127.0.0.1:0")
	mux := http.NewServeMux()
	mux.Handle(metricsPath, page)
	serve(t, mux, l)

	var slo struct {
		SLOs []struct {
			Objective float64
			SLI       struct {
				Events struct {
					ErrorQuery string `yaml:"error_query"`
					TotalQuery string `yaml:"total_query"`
				}
			}
		} `yaml:"slos"`
	}
	specification := documented(t, "opentelemetry.md", "slos:", "")
	if err := yaml.Unmarshal([]byte(specification), &slo); err != nil || len(slo.SLOs) != 1 {
		t.Fatalf("%+v, %v", slo, err)
	}
	objective := slo.SLOs[0]
	window := strings.NewReplacer("{{.window}}", "5m")
	failed, all := window.Replace(objective.SLI.Events.ErrorQuery), window.Replace(objective.SLI.Events.TotalQuery)
	rules := filepath.Join(t.TempDir(), "rules.yml")
	text := fmt.Sprintf(`groups:
- name: sloth-slo-sli-recordings-shop-requests
  interval: 1s
  rules:
  - record: slo:sli_error:ratio_rate5m
    expr: |
      (%s)
      /
      (%s)
    labels: {sloth_id: shop-requests, sloth_service: shop, sloth_slo: requests, sloth_window: 5m}
- name: sloth-slo-alerts-shop-requests
  interval: 1s
  rules:
  - alert: ShopErrors
    expr: max(slo:sli_error:ratio_rate5m{sloth_id="shop-requests"} > (14.4 * %v)) without (sloth_window)
`, failed, all, 1-objective.Objective/100)
	if err := os.WriteFile(rules, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	call()
	s := newServer(t, "prometheus-3", prometheus3.path(t), false)
	config := s.config([]job{{
		name: "shop", path: metricsPath, targets: []string{l.Addr().String()},
		interval: time.Second, timeout: time.Second,
	}})
	config += "  scrape_native_histograms: true\n  always_scrape_classic_histograms: true\n"
	s.configure(t, config+"rule_files: ["+rules+"]\n")
	s.start(t)
	const requests = `sum(http_server_request_duration_seconds_count)`
	await := func(expression string, want float64) {
		t.Helper()
		for deadline := time.Now().Add(catchUp); ; time.Sleep(100 * time.Millisecond) {
			result := s.query(t, expression)
			if len(result) == 1 && math.Abs(result[0].Value.value-want) < 1e-9 {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s is %v, want %v", expression, result, want)
			}
		}
	}
	await(requests, 10)
	call()
	await(requests, 20)
	await(`sum(http_server_request_duration_seconds_count) - sum(windowstat_complete_total{resource!~"/shop.*"})`, 0)
	await(`sum(rpc_server_call_duration_seconds_count) - sum(windowstat_complete_total{resource=~"/shop.*"})`, 0)
	await(`histogram_count(sum(http_server_request_duration_seconds))`, 20)
	await(`slo:sli_error:ratio_rate5m`, 0.2)
	await(`count(ALERTS{alertname="ShopErrors",alertstate="firing"})`, 1)
	for _, q := range otelQueries {
		expression, want := q.expression, q.results
		got := map[string]bool{}
		for _, x := range s.query(t, expression) {
			if math.IsNaN(x.Value.value) {
				t.Errorf("%s is not a number for %v", expression, x.Metric)
			}
			var values []string
			for _, name := range []string{
				"le", "http_route", "http_request_method", "http_response_status_code", "error_type", "rpc_method",
				"rpc_response_status_code",
			} {
				if v := x.Metric[name]; v != "" {
					values = append(values, v)
				}
			}
			got[strings.Join(values, " ")] = true
		}
		for _, v := range want {
			if !got[v] {
				t.Errorf("%s has no result for %q, only %v", expression, v, got)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s has %d results, want %d", expression, len(got), len(want))
		}
	}
}
