package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
	"github.com/windowstat/windowstat/collector/otelstat"
	"github.com/windowstat/windowstat/exporter/prom"
)

// otlpReceiver is a running windowstat otlp.
type otlpReceiver struct {
	http, grpc, pages string
	process           *exec.Cmd
}

// newOTLPReceiver finds addresses for a receiver, and does not start it yet.
func newOTLPReceiver(t *testing.T) *otlpReceiver {
	return &otlpReceiver{http: freeAddress(t), grpc: freeAddress(t), pages: freeAddress(t)}
}

// start starts the receiver, and waits until it is ready.
func (o *otlpReceiver) start(t *testing.T, binary string, args ...string) {
	t.Helper()
	o.process = command(t, binary,
		append([]string{
			"otlp", "--spans.http-listen-address=" + o.http, "--spans.grpc-listen-address=" + o.grpc,
			"--web.listen-address=" + o.pages,
		}, args...)...)
	o.process.Stderr = os.Stderr
	startReady(t, o.process, saysReady(o.pages))
}

// countsBySecond holds nonzero counts by resource, column and second.
type countsBySecond map[string]float64

var perSecondLine = regexp.MustCompile(`(?m)^windowstat_persecond_(pass|complete|exception|` +
	`in_flight)\{resource="(.*)"\} (\S+) (\d+)$`)

// readSeconds reads a page of seconds.
func readSeconds(t *testing.T, page string, columns ...string) countsBySecond {
	t.Helper()
	found := countsBySecond{}
	for _, m := range perSecondLine.FindAllStringSubmatch(page, -1) {
		v, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			t.Fatal(err)
		}
		for _, column := range columns {
			if v != 0 && m[1] == column {
				found[m[2]+"|"+m[1]+"|"+m[4][:len(m[4])-3]] = v
			}
		}
	}
	return found
}

// page returns the receiver's page of the last minutes.
func (o *otlpReceiver) page(t *testing.T) string {
	t.Helper()
	r, err := http.Get("http://" + o.pages + "/metrics/seconds?window=5m")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// sealed returns the page once it has a second after the given ones, so that all of them are sealed.
func (o *otlpReceiver) sealed(t *testing.T, counts countsBySecond) string {
	t.Helper()
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	last := int64(0)
	for key := range counts {
		last = max(last, number(key[strings.LastIndexByte(key, '|')+1:]))
	}
	for deadline := time.Now().Add(2 * catchUp); time.Now().Before(deadline); time.Sleep(200 * time.Millisecond) {
		page := o.page(t)
		for _, m := range perSecondLine.FindAllStringSubmatch(page, -1) {
			if number(m[4])/1000 > last {
				return page
			}
		}
	}
	t.Fatalf("the receiver does not seal second %d", last)
	return ""
}

// compareSeconds compares two sets of counts.
func compareSeconds(t *testing.T, what string, got, want countsBySecond) {
	t.Helper()
	wrong := 0
	for key := range union(got, want) {
		if got[key] != want[key] {
			wrong++
			t.Errorf("%s: %s: %v, want %v", what, key, got[key], want[key])
		}
	}
	t.Logf("%s: %d of %d numbers are equal", what, len(want)-wrong, len(want))
}

func union(a, b countsBySecond) countsBySecond {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// spanSeconds is a SpanProcessor that counts spans by the seconds of their own times.
type spanSeconds struct {
	mu     sync.Mutex
	counts countsBySecond
	edge   time.Duration // smallest distance of a time to the edge of a second

	// around holds the seconds in which requests reached the server and left it. They equal the seconds of the spans,
	// unless a second ended between a request and its span, or the reverse. Counters between the two may then use
	// either second.
	around countsBySecond
}

// handler counts requests outside all other handlers that count them.
func (s *spanSeconds) handler(next http.Handler) http.Handler {
	count := func(column string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.around[fmt.Sprint(column, "|", time.Now().Unix())]++
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		count("pass")
		defer count("complete")
		next.ServeHTTP(w, r)
	})
}

// torn returns the reason why successive readings of clocks disagree on the second of a call, or an empty string if
// they agree.
func (s *spanSeconds) torn() string {
	inside := countsBySecond{}
	for key, n := range s.counts {
		_, columnAndSecond, _ := strings.Cut(key, "|")
		inside[columnAndSecond] += n
	}
	maps.DeleteFunc(inside, func(key string, _ float64) bool { return strings.HasPrefix(key, "exception") })
	switch {
	case s.edge < 20*time.Millisecond:
		return fmt.Sprint("a call came to ", s.edge, " of the edge of a second")
	case !maps.Equal(inside, s.around):
		return "a second ended between a request and its span"
	}
	return ""
}

func (s *spanSeconds) OnStart(context.Context, sdktrace.ReadWriteSpan) {}
func (s *spanSeconds) Shutdown(context.Context) error                  { return nil }
func (s *spanSeconds) ForceFlush(context.Context) error                { return nil }
func (s *spanSeconds) OnEnd(span sdktrace.ReadOnlySpan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	count := func(column string, at time.Time) {
		s.counts[fmt.Sprint(span.Name(), "|", column, "|", at.Unix())]++
		in := time.Duration(at.Nanosecond())
		s.edge = min(s.edge, in, time.Second-in)
	}
	count("pass", span.StartTime())
	count("complete", span.EndTime())
	if span.Status().Code != 0 {
		count("exception", span.EndTime())
	}
}

// TestSpans counts one service in several ways: in process, by httpstat, by otelstat and by the times of its SDK, and
// by its spans through the SDK's exporters over HTTP and gRPC. All counts are equal second by second. One receiver
// starts after the load has begun, so the SDK has to resend its spans.
func TestSpans(t *testing.T) {
	t.Parallel()
	binary := buildWindowstat(t)
	over := map[string]*otlpReceiver{"HTTP": newOTLPReceiver(t), "gRPC": newOTLPReceiver(t)}
	over["HTTP"].start(t, binary, "--service=shop")

	sent := &spanSeconds{counts: countsBySecond{}, edge: time.Second, around: countsBySecond{}}
	byMiddleware, bySpans := newCollector(t), newCollector(t)
	toHTTP, err := otlptracehttp.New(t.Context(), otlptracehttp.WithEndpoint(over["HTTP"].http),
		otlptracehttp.WithInsecure(), otlptracehttp.WithCompression(otlptracehttp.GzipCompression))
	if err != nil {
		t.Fatal(err)
	}
	// The SDK resends for as long as the receiver may take to start. By default it drops spans after ten seconds.
	const repeats = 2 * catchUp
	toGRPC, err := otlptracegrpc.New(t.Context(), otlptracegrpc.WithEndpoint(over["gRPC"].grpc),
		otlptracegrpc.WithInsecure(), otlptracegrpc.WithCompressor("gzip"),
		otlptracegrpc.WithTimeout(repeats), otlptracegrpc.WithRetry(otlptracegrpc.RetryConfig{
			Enabled: true, InitialInterval: time.Second, MaxInterval: 5 * time.Second, MaxElapsedTime: repeats,
		}))
	if err != nil {
		t.Fatal(err)
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "shop"))),
		sdktrace.WithSpanProcessor(sent), sdktrace.WithSpanProcessor(otelstat.NewProcessor(bySpans)),
		sdktrace.WithBatcher(toHTTP),
		sdktrace.WithBatcher(toGRPC, sdktrace.WithBatchTimeout(time.Second), sdktrace.WithExportTimeout(repeats)),
	)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /users/{id}", func(_ http.ResponseWriter, r *http.Request) {
		took, err := time.ParseDuration(r.FormValue("took"))
		if err != nil {
			panic(err)
		}
		time.Sleep(took)
	})
	mux.HandleFunc("POST /fail", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	route := func(r *http.Request) string { _, pattern := mux.Handler(r); return pattern }
	srv := httptest.NewServer(sent.handler(httpstat.Handler(byMiddleware, route,
		otelhttp.NewHandler(mux, "service", otelhttp.WithTracerProvider(provider)))))
	defer srv.Close()
	// In the middle of a second, where successive readings of clocks agree on the second.
	const begin, end = 150 * time.Millisecond, 750 * time.Millisecond
	var load sync.WaitGroup
	until := time.Now().Add(12 * time.Second)
	for range 8 {
		load.Go(func() {
			for time.Now().Before(until) {
				now := time.Now()
				in := now.Sub(now.Truncate(time.Second))
				switch {
				case in < begin:
					time.Sleep(begin - in)
				case in > end:
					time.Sleep(time.Second + begin - in)
				}
				method, path := http.MethodGet, fmt.Sprintf("/users/%d?took=%dms", rand.IntN(100), rand.IntN(100))
				switch rand.IntN(20) {
				case 0:
					path = "/users/1?took=1s"
				case 1:
					path = "/users/1?took=3s"
				case 2:
					method, path = http.MethodPost, "/fail"
				}
				request, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, nil)
				if err != nil {
					t.Error(err)
					return
				}
				r, err := http.DefaultClient.Do(request)
				if err != nil {
					t.Error(err)
					return
				}
				_ = r.Body.Close()
			}
		})
	}
	time.Sleep(3 * time.Second)
	over["gRPC"].start(t, binary, "--service=shop")
	load.Wait()
	srv.Close() // the last spans end after their responses
	if err := provider.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}

	pages := map[string]string{}
	for name, o := range over {
		pages[name] = o.sealed(t, sent.counts)
	}
	inProcess := pageOf(t, byMiddleware)
	spans := pageOf(t, bySpans)
	for name, page := range pages {
		compareSeconds(t, name+" and the times of the spans",
			readSeconds(t, page, "pass", "complete", "exception"), sent.counts)
		if torn := sent.torn(); torn != "" {
			t.Logf("%s: %s, where clocks that are read in turn need not agree", name, torn)
			continue
		}
		columns := []string{"pass", "complete", "exception", "in_flight"}
		compareSeconds(t, name+" and httpstat", readSeconds(t, page, columns...), readSeconds(t, inProcess, columns...))
		columns = []string{"complete", "exception"} // otelstat counts a call entirely at its end
		compareSeconds(t, name+" and otelstat", readSeconds(t, page, columns...), readSeconds(t, spans, columns...))
	}
	for name, o := range over {
		if err := o.process.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if err := o.process.Wait(); err != nil {
			t.Errorf("%s: it does not end well: %v", name, err)
		}
	}
}

func newCollector(t *testing.T) *collector.Collector {
	t.Helper()
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// pageOf returns the page of seconds of a Collector.
func pageOf(t *testing.T, c *collector.Collector) string {
	t.Helper()
	seconds, err := prom.NewSeconds(c, prom.SecondsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	seconds.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/?window=5m", nil))
	return w.Body.String()
}

// TestSpansFromNode compares a JavaScript service's own counts with the counts of its spans. Its SDK sends the spans as
// JSON and as protobuf over HTTP, and by gRPC.
func TestSpansFromNode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"package.json", "package-lock.json", "service.js"} {
		b, err := os.ReadFile(filepath.Join("testdata", "otlp", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := run(t.Context(), dir, "npm", "ci", "--ignore-scripts", "--no-fund", "--no-audit"); err != nil {
		t.Fatal(err)
	}
	binary := buildWindowstat(t)
	names := []string{"JSON", "protobuf", "gRPC"}
	var over []*otlpReceiver
	for range names {
		o := newOTLPReceiver(t)
		o.start(t, binary, "--service=shop")
		over = append(over, o)
	}
	// The setup from the documentation.
	var documented []string
	for _, b := range blocks(t, "sh") {
		if b.page == "otlp.md" && strings.Contains(b.text, "OTEL_SERVICE_NAME") {
			documented = strings.Fields(strings.ReplaceAll(b.text, "127.0.0.1:4318", over[0].http))
		}
	}
	if len(documented) == 0 {
		t.Fatal("otlp.md has no set-up")
	}
	out, err := output(t.Context(), dir,
		append(append([]string{"env"}, documented...), "node", "service.js", over[1].http, over[2].grpc)...)
	if err != nil {
		t.Fatal(err)
	}
	var counted countsBySecond
	if err := json.Unmarshal(out, &counted); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for i, o := range over {
		compareSeconds(t, names[i], readSeconds(t, o.sealed(t, counted), "pass", "complete", "exception"), counted)
	}
}
