package bench_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	slokmetrics "github.com/slok/go-http-metrics/metrics/prometheus"
	slok "github.com/slok/go-http-metrics/middleware"
	slokstd "github.com/slok/go-http-metrics/middleware/std"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/sdk/metric"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

const route = "GET /users/{id}"

// middleware is a way to count the requests of a net/http service that uses a ServeMux.
type middleware struct {
	name string
	wrap func(b *testing.B, mux *http.ServeMux, h http.Handler) http.Handler
}

// registered returns a mux with the handler for the route.
func registered(mux *http.ServeMux, h http.Handler) http.Handler {
	mux.Handle(route, h)
	return mux
}

var middlewares = []middleware{
	{"bare", func(_ *testing.B, mux *http.ServeMux, h http.Handler) http.Handler { return registered(mux, h) }},
	{"windowstat-route", func(b *testing.B, mux *http.ServeMux, h http.Handler) http.Handler {
		return registered(mux, httpstat.Route(counting(b), route, h))
	}},
	{"windowstat-mux", func(b *testing.B, mux *http.ServeMux, h http.Handler) http.Handler {
		registered(mux, h)
		return httpstat.Mux(counting(b), mux)
	}},
	{"promhttp", func(_ *testing.B, mux *http.ServeMux, h http.Handler) http.Handler {
		labels := prometheus.Labels{"route": route}
		inFlight := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "in_flight"}, []string{"route"}).With(labels)
		duration := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "duration"}, []string{"route", "code"}).
			MustCurryWith(labels)
		requests := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "requests"}, []string{"route", "code"}).
			MustCurryWith(labels)
		return registered(mux, promhttp.InstrumentHandlerInFlight(inFlight,
			promhttp.InstrumentHandlerDuration(duration, promhttp.InstrumentHandlerCounter(requests, h))))
	}},
	{"go-http-metrics", func(_ *testing.B, mux *http.ServeMux, h http.Handler) http.Handler {
		m := slok.New(
			slok.Config{Recorder: slokmetrics.NewRecorder(slokmetrics.Config{Registry: prometheus.NewRegistry()})})
		return registered(mux, slokstd.Handler(route, m, h))
	}},
	{"otelhttp", func(b *testing.B, mux *http.ServeMux, h http.Handler) http.Handler {
		p := metric.NewMeterProvider(metric.WithReader(metric.NewManualReader()))
		b.Cleanup(func() { _ = p.Shutdown(context.Background()) })
		return registered(mux,
			otelhttp.NewHandler(h, route, otelhttp.WithMeterProvider(p),
				otelhttp.WithTracerProvider(tracenoop.NewTracerProvider())))
	}},
}

// counting returns a Collector on the real clock, as in a service.
func counting(b *testing.B) *collector.Collector {
	b.Helper()
	c, err := collector.New(collector.Options{})
	if err != nil {
		b.Fatal(err)
	}
	return c
}

// nowhere discards the response, and implements the interfaces of net/http's writer for HTTP/1.
type nowhere struct {
	http.Flusher
	http.Hijacker
	io.ReaderFrom
	header http.Header
}

func (w *nowhere) Header() http.Header         { return w.header }
func (w *nowhere) Write(b []byte) (int, error) { return len(b), nil }
func (w *nowhere) WriteHeader(int)             {}

// BenchmarkMiddleware measures requests, one after the other, to a handler that responds with a status, through a mux
// that routes them.
func BenchmarkMiddleware(b *testing.B) {
	for _, m := range middlewares {
		b.Run(m.name, func(b *testing.B) {
			h := m.wrap(b, http.NewServeMux(),
				http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
			w, r := &nowhere{header: http.Header{}}, httptest.NewRequest(http.MethodGet, "/users/7", nil)
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(w, r)
			}
		})
	}
}

// BenchmarkMiddlewareBeside compares the middleware around a handler with the context path that it is built on, in
// turns. It also compares the middleware with the context path plus the copy of the request that carries the context,
// which net/http requires.
func BenchmarkMiddlewareBeside(b *testing.B) {
	c := counting(b)
	w, r := &nowhere{header: http.Header{}}, httptest.NewRequest(http.MethodGet, "/users/7", nil)
	h := httpstat.Route(c, route, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	enter := func() (ctx context.Context, e collector.Entry) {
		ctx, e, _ = c.Enter(r.Context(), route, collector.Inbound(), collector.Entrance(httpstat.DefaultEntrance))
		return
	}
	var copied *http.Request
	for name, other := range map[string]func(){
		"route/context": func() {
			_, e := enter()
			e.ExitCode(nil, collector.HTTPStatus(http.StatusOK))
		},
		"route/context-and-request": func() {
			ctx, e := enter()
			copied = r.WithContext(ctx)
			e.ExitCode(nil, collector.HTTPStatus(http.StatusOK))
		},
	} {
		b.Run(name, func(b *testing.B) {
			var t turns
			for b.Loop() {
				t.add(each(1000, func() { h.ServeHTTP(w, r) }), each(1000, other))
			}
			t.report(b)
			b.ReportMetric(testing.AllocsPerRun(1000, func() { h.ServeHTTP(w, r) }), "allocs/op")
		})
	}
	_ = copied
}
