package e2e

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
	"github.com/windowstat/windowstat/exporter/prom"
)

// TestCodes runs real servers that read the response codes of requests in three ways: from the page as text, from the
// page in protobuf, and from the service's own registry. The registry writes code="" for calls without a code. To a
// server all three are the same series, and their values must add up.
func TestCodes(t *testing.T) {
	t.Parallel()
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := httpstat.Route(c, "GET /", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/missing" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	for _, path := range []string{"/", "/missing", "/missing"} {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, path, nil))
	}
	e := c.Resource("GET /").Enter()
	e.Exit(nil) // as after a panic in a handler
	want := map[string]float64{"": 1, "200": 1, "401": 2}

	page, err := prom.Handler(c, prom.Options{})
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := prom.New(c, prom.Options{})
	if err != nil {
		t.Fatal(err)
	}
	own := prometheus.NewPedanticRegistry()
	own.MustRegister(metrics)
	mux := http.NewServeMux()
	mux.Handle(metricsPath, page)
	mux.Handle("/protobuf", page)
	mux.Handle("/own", promhttp.HandlerFor(own, promhttp.HandlerOpts{}))
	l := listen(t, "127.0.0.1:0")
	serve(t, mux, l)
	targets := []string{l.Addr().String()}
	text := job{name: "text", path: metricsPath, targets: targets, interval: 4 * time.Second}
	registry := job{name: "own", path: "/own", targets: targets, interval: 4 * time.Second}
	native := job{name: "protobuf", path: "/protobuf", targets: targets, interval: 4 * time.Second, histogram: "native"}
	jobs := map[*server][]string{
		startServer(t, "prometheus-3", prometheus3, text, registry, native): {"text", "own", "protobuf"},
		startServer(t, "prometheus-2", prometheus2, text, registry):         {"text", "own"},
		startServer(t, "victoria", victoria, text, registry):                {"text", "own"},
	}
	for s, jobs := range jobs {
		for _, job := range jobs {
			selector := `windowstat_complete_total{resource="GET /",job="` + job + `"}`
			got := map[string]float64{}
			// VictoriaMetrics may show a part of a scrape first.
			for deadline := time.Now().Add(catchUp); !maps.Equal(got, want) &&
				time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
				clear(got)
				for _, x := range s.query(t, selector) {
					if _, labelled := x.Metric["code"]; labelled == (x.Metric["code"] == "") {
						t.Errorf("%s, %s: %v", s.name, job, x.Metric)
					}
					got[x.Metric["code"]] += x.Value.value
				}
			}
			if !maps.Equal(got, want) {
				t.Errorf("%s, %s: %v, want %v", s.name, job, got, want)
			}
			if n := s.number(t, "sum without (code) ("+selector+")"); n != 4 {
				t.Errorf("%s, %s: the sum is %v", s.name, job, n)
			}
		}
	}
}
