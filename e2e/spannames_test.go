package e2e

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// completeLine matches a counter of calls at /metrics.
var completeLine = regexp.MustCompile(`(?m)^windowstat_complete_total\{(?:code="(\w*)",)?resource="(.*?)"(?:,` +
	`code="(\w*)")?\} (\d+)$`)

// completed returns the calls of each resource, by name and code.
func (o *otlpReceiver) completed(t *testing.T) map[string]string {
	t.Helper()
	r, err := http.Get("http://" + o.pages + metricsPath)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	page, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, m := range completeLine.FindAllStringSubmatch(string(page), -1) {
		if m[4] != "0" {
			found[strings.TrimSpace(m[2]+" "+m[1]+m[3])] = m[4]
		}
	}
	return found
}

// TestSpanNames runs services in Go and in JavaScript with real instrumentations, and compares the names of their calls
// with the table of docs/otlp.md.
func TestSpanNames(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "otlpnames"))); err != nil {
		t.Fatal(err)
	}
	if err := run(t.Context(), dir, "npm", "install", "--no-package-lock", "--ignore-scripts",
		"--no-fund", "--no-audit"); err != nil {
		t.Fatal(err)
	}
	o := newOTLPReceiver(t)
	o.start(t, buildWindowstat(t), "--tolerance=10s")
	t.Cleanup(func() {
		_ = o.process.Process.Kill()
		_ = o.process.Wait()
	})

	nameGo(t, o.http)
	for service, tc := range map[string]struct{ register, framework string }{
		"http":         {"@opentelemetry/auto-instrumentations-node/register", "http"},
		"express":      {"@opentelemetry/auto-instrumentations-node/register", "express"},
		"fastify":      {"@opentelemetry/auto-instrumentations-node/register", "fastify"},
		"fastify-otel": {"./fastify.js", "fastify"},
	} {
		if _, err := output(t.Context(), dir, "env", "OTEL_SERVICE_NAME="+service,
			"OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
			"OTEL_EXPORTER_OTLP_ENDPOINT=http://"+o.http, "OTEL_METRICS_EXPORTER=none", "OTEL_LOGS_EXPORTER=none",
			"OTEL_NODE_RESOURCE_DETECTORS=env", "OTEL_BSP_SCHEDULE_DELAY=300",
			"node", "--require", tc.register, "service.js", tc.framework); err != nil {
			t.Fatal(err)
		}
	}

	want := map[string]string{
		"go: GET /users/{id} 200": "2", "go: 127.0.0.1: GET 200": "1", "go: localhost: GET 200": "1",
		"go: localhost: GET 404": "1",

		"http: inbound GET 200": "2", "http: inbound POST 200": "1",
		"express: GET /users/:id 200": "2", "express: POST /cart 200": "1",
		"fastify: inbound GET 200": "2", "fastify: inbound POST 200": "1",
		"fastify-otel: GET /users/:id 200": "2", "fastify-otel: POST /cart 200": "1",

		"unmatched 404": "5",
	}
	// Every service calls itself by both names.
	for _, service := range []string{"http", "express", "fastify", "fastify-otel"} {
		want[service+": localhost: GET 200"], want[service+": localhost: POST 200"] = "1", "1"
		want[service+": localhost: GET 404"], want[service+": 127.0.0.1: GET 200"] = "1", "1"
	}
	got := o.completed(t)
	for deadline := time.Now().Add(catchUp); !maps.Equal(got, want) &&
		time.Now().Before(deadline); got = o.completed(t) {
		time.Sleep(time.Second)
	}
	for name := range unionOfNames(got, want) {
		if got[name] != want[name] {
			t.Errorf("%s: %q calls, want %q", name, got[name], want[name])
		}
	}
}

func unionOfNames(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// nameGo serves a mux inside an otelhttp handler, and calls itself with otelhttp's transport.
func nameGo(t *testing.T, address string) {
	t.Helper()
	to, err := otlptracehttp.New(t.Context(), otlptracehttp.WithEndpoint(address), otlptracehttp.WithInsecure())
	if err != nil {
		t.Fatal(err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(to),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "go"))))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /users/{id}", func(http.ResponseWriter, *http.Request) {})
	server := httptest.NewServer(otelhttp.NewHandler(mux, "service", otelhttp.WithTracerProvider(provider)))
	client := http.Client{Transport: otelhttp.NewTransport(http.DefaultTransport,
		otelhttp.WithTracerProvider(provider))}
	byName := strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	for _, url := range []string{server.URL + "/users/7", byName + "/users/8", byName + "/nowhere"} {
		r, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			t.Fatal(fmt.Errorf("%s: %w", url, err))
		}
		_ = r.Body.Close()
	}
	server.Close()
	if err := errors.Join(provider.ForceFlush(t.Context()), provider.Shutdown(t.Context())); err != nil {
		t.Fatal(err)
	}
}
