package prom_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/exporter/vm"
	"github.com/windowstat/windowstat/node"
)

// conventional matches the lines of OpenTelemetry's metrics, HELP texts excluded.
var conventional = regexp.MustCompile(`(?m)^(?:# (?:TYPE|UNIT) )?(?:http|rpc)_server_.*\n`)

// get returns a page in a format.
func get(t *testing.T, h http.Handler, accept string) *httptest.ResponseRecorder {
	t.Helper()
	r, rec := httptest.NewRequest("GET", "/metrics", nil), httptest.NewRecorder()
	r.Header.Set("Accept", accept)
	if h.ServeHTTP(rec, r); rec.Code != http.StatusOK {
		t.Fatalf("%d %s", rec.Code, rec.Body)
	}
	return rec
}

// conventionalLines returns the lines of OpenTelemetry's metrics.
func conventionalLines(page string) string {
	return strings.Join(conventional.FindAllString(page, -1), "")
}

// serving returns a service that has counted calls of all kinds.
func serving(t *testing.T, o collector.Options) *collector.Collector {
	o.Windows = node.Options{Bounds: []time.Duration{5 * ms, 100 * ms}}
	c, now := service(t, o)
	call := func(name string, rt time.Duration, code collector.Code, opts ...collector.CallOption) {
		_, e, err := c.Enter(t.Context(), name, opts...)
		if err != nil {
			t.Fatal(err)
		}
		*now = now.Add(rt)
		e.ExitCode(nil, code)
	}
	in := []collector.CallOption{collector.Inbound(), collector.Entrance("http")}
	rpc := []collector.CallOption{collector.Inbound(), collector.Entrance("grpc")}
	call("GET /users/{id}", ms, collector.HTTPStatus(200), in...)
	call("GET /users/{id}", 50*ms, collector.HTTPStatus(200), append(in, collector.Origin("mobile"))...)
	call("GET /users/{id}", time.Second, collector.HTTPStatus(503), append(in, collector.Batch(3))...)
	call("GET /users/{id}", 2*ms, collector.HTTPStatus(600), in...)
	call("GET /users/{id}", 2*ms, collector.Code{}, in...) // a panic
	call("GET /users/{id}", ms, collector.HTTPStatus(200)) // not inbound
	call("POST /pay", ms, collector.HTTPStatus(201), collector.Inbound())

	// Routes of two hosts are one route.
	call("GET a.com/cart", ms, collector.HTTPStatus(200), in...)
	call("GET b.com/cart", 50*ms, collector.HTTPStatus(200), in...)

	// The method is unknown.
	call("/static/", ms, collector.HTTPStatus(304), in...)
	call("PURGE /static/", 10*ms, collector.HTTPStatus(304), in...)
	call("unmatched", ms, collector.HTTPStatus(404), in...)

	call("/shop.Cart/Add", ms, collector.GRPCCode(0), rpc...)
	call("/shop.Cart/Add", 10*ms, collector.GRPCCode(13), rpc...)
	call("/shop.Cart/Add", 10*ms, collector.GRPCCode(1), rpc...)
	call("/shop.Cart/Add", 10*ms, collector.Code{}, rpc...)
	call("unmatched", ms, collector.GRPCCode(12), rpc...)
	call("POST /shop.Cart/Add", ms, collector.GRPCCode(0), in...) // a gRPC server behind package httpstat

	// Neither HTTP nor gRPC, or not inbound.
	call("orders", ms, collector.Code{}, collector.Inbound())
	call("GET api.example.com", ms, collector.HTTPStatus(200), collector.Outbound())
	call("load user", ms, collector.Code{})

	for _, name := range []string{"GET /users/{id}", "GET /slow", "/shop.Cart/Add"} { // in flight
		if _, _, err := c.Enter(t.Context(), name, in...); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

// The bytes of the page: names, labels, values and order. By adds no label to these metrics.
func TestOpenTelemetryPage(t *testing.T) {
	c := serving(t, collector.Options{OpenTelemetry: true})
	for _, by := range []prom.By{"", prom.ByOrigin, prom.ByEntrance} {
		h, err := prom.Handler(c, prom.Options{By: by})
		if err != nil {
			t.Fatal(err)
		}
		got := conventionalLines(get(t, h, "text/plain").Body.String())
		path := filepath.Join("testdata", "opentelemetry.txt")
		if *update && by == "" {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("by %q, want %s:\n%s", by, path, got)
		}
	}
}

// Without the option there are no such metrics, and without response times there are no histograms.
func TestOpenTelemetryIsOptional(t *testing.T) {
	for _, o := range []collector.Options{{}, {OpenTelemetry: true, DurationsUnknown: true}} {
		h, err := prom.Handler(serving(t, o), prom.Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := conventionalLines(get(t, h, "text/plain").Body.String())
		if strings.Contains(got, "duration") || strings.Contains(got, "active") != o.OpenTelemetry {
			t.Errorf("%+v:\n%s", o, got)
		}
	}
}

// The default bounds are windowstat's and those of the conventions.
func TestOpenTelemetryBounds(t *testing.T) {
	c, _ := service(t, collector.Options{OpenTelemetry: true})
	_, e, _ := c.Enter(t.Context(), "GET /", collector.Inbound())
	e.ExitCode(nil, collector.HTTPStatus(200))
	h, err := prom.Handler(c, prom.Options{})
	if err != nil {
		t.Fatal(err)
	}
	page := conventionalLines(get(t, h, "text/plain").Body.String())
	for _, bound := range []float64{0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10} {
		if le := fmt.Sprintf(`le="%v"`, bound); !strings.Contains(page, le) {
			t.Errorf("no %s in\n%s", le, page)
		}
	}
}

// Protobuf has the same series, with native buckets. VictoriaMetrics gets the same counts.
func TestOpenTelemetryInOtherFormats(t *testing.T) {
	c := serving(t, collector.Options{OpenTelemetry: true})
	h, err := prom.Handler(c, prom.Options{})
	if err != nil {
		t.Fatal(err)
	}
	count := regexp.MustCompile(`(?m)^((?:http|rpc)_server_\w+_seconds)_count(\S+) (\d+)$`)
	counts := func(page string) map[string]string {
		all := map[string]string{}
		for _, m := range count.FindAllStringSubmatch(page, -1) {
			all[m[1]+m[2]] = m[3]
		}
		return all
	}
	want := counts(get(t, h, "text/plain").Body.String())
	got := map[string]string{}
	for name, m := range protobufMetrics(t, get(t, h, protobuf).Body) {
		if h := m.Histogram; h != nil && conventional.MatchString(name+"\n") {
			got[name] = fmt.Sprint(h.GetSampleCount())
			if native := nativeCount(h); native != h.GetSampleCount() || h.GetSchema() != node.NativeSchema {
				t.Errorf("%s has %d calls in native buckets, want %d", name, native, h.GetSampleCount())
			}
		}
	}
	if !maps.Equal(got, want) || len(want) < 10 {
		t.Errorf("protobuf has %v, want %v", got, want)
	}
	w, err := vm.New(c, vm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	if w.WriteMetrics(&page); !maps.Equal(counts(page.String()), want) {
		t.Errorf("VictoriaMetrics gets %s, want %v", page.String(), want)
	}
}

// nativeCount returns the number of calls in the native buckets.
func nativeCount(h *dto.Histogram) uint64 {
	n, bucket := h.GetZeroCount(), int64(0)
	for _, delta := range h.PositiveDelta {
		bucket += delta
		n += uint64(bucket)
	}
	return n
}

// On every page, while requests come and go, the counts by method, route and status equal complete_total, and at the
// end they equal the requests that were made.
func TestOpenTelemetryCountsEqualTheTotals(t *testing.T) {
	c, err := collector.New(collector.Options{OpenTelemetry: true})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	for _, pattern := range []string{"GET /users/{id}", "POST /users", "GET /fail"} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader([]int{200, 200, 204, 404, 500, 503}[rand.IntN(6)])
		})
	}
	served := httpstat.Mux(c, mux, httpstat.OriginHeader("From"))
	h, err := prom.Handler(c, prom.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var made [3]int
	var working sync.WaitGroup
	stop := make(chan struct{})
	for i, r := range [][2]string{{"GET", "/users/7"}, {"POST", "/users"}, {"GET", "/fail"}} {
		working.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				request := httptest.NewRequest(r[0], r[1], nil)
				request.Header.Set("From", fmt.Sprint(made[i]%3))
				served.ServeHTTP(httptest.NewRecorder(), request)
				made[i]++
			}
		})
	}
	count := regexp.MustCompile(
		`(?m)^(http_server_request_duration_seconds_count|windowstat_complete_total)(\{.*\}) (\d+)$`,
	)
	read := func() (calls int) {
		got, want := map[string]int{}, map[string]int{}
		for _, m := range count.FindAllStringSubmatch(get(t, h, "text/plain").Body.String(), -1) {
			labels := map[string]string{}
			for _, l := range label.FindAllStringSubmatch(m[2], -1) {
				labels[l[1]] = l[2]
			}
			var n int
			if _, err := fmt.Sscan(m[3], &n); err != nil {
				t.Fatal(err)
			}
			if labels["http_route"] != "" {
				got[labels["http_request_method"]+" "+labels["http_route"]+" "+labels["http_response_status_code"]] += n
				calls += n
			} else if n > 0 {
				want[labels["resource"]+" "+labels["code"]] += n
			}
		}
		if !maps.Equal(got, want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		return calls
	}
	for range 100 {
		read()
	}
	close(stop)
	working.Wait()
	if got, want := read(), made[0]+made[1]+made[2]; got != want || want == 0 {
		t.Errorf("%d calls, want %d", got, want)
	}
}
