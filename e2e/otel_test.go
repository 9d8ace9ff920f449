package e2e

import (
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/otelstat"
)

// TestOpenTelemetry sends requests with hey to a service that is traced by otelhttp and samples one request in ten. The
// counts of the spans equal the counts of hey, by route and status, because each span has the name of its route when it
// ends.
func TestOpenTelemetry(t *testing.T) {
	t.Parallel()
	hey := buildHey(t)
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(otelstat.NewProcessor(c)),
		sdktrace.WithSampler(sdktrace.AlwaysRecord(sdktrace.TraceIDRatioBased(0.1))))
	mux := http.NewServeMux()
	mux.HandleFunc("POST /ok/{id}", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	mux.HandleFunc("POST /fail", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	mux.HandleFunc("POST /gone", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) })
	srv := httptest.NewUnstartedServer(otelhttp.NewHandler(mux, "service", otelhttp.WithTracerProvider(provider)))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.Start()
	defer srv.Close()
	want := map[string]map[string]int64{}
	for path, name := range map[string]string{"/ok/7": "POST /ok/{id}", "/fail": "POST /fail", "/gone": "POST /gone"} {
		want[name] = ask(t, hey, srv.URL+path)
	}
	srv.Close() // the last spans end after their responses
	if got := answers(t, c); !maps.EqualFunc(got, want, maps.Equal) {
		t.Errorf("the spans counted\n%v\nhey\n%v", got, want)
	}
	if total := c.Inbound().Snapshot(nil).Total; total.Complete != 180 || total.Exception != 60 {
		t.Errorf("%d inbound, %d failed; want 180 and 60", total.Complete, total.Exception)
	}
}
