package exporter_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/snappy"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/live"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/exporter/push"
	"github.com/windowstat/windowstat/exporter/sampler"
)

var quiet = slog.New(slog.DiscardHandler)

func get(t *testing.T, h http.Handler, path string) (int, string) {
	t.Helper()
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, httptest.NewRequest("GET", path, nil))
	return rec.Code, rec.Body.String()
}

// The zero Options enable the pages only.
func TestZeroOptions(t *testing.T) {
	x, err := exporter.New(exporter.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if x.Log != nil || x.Limits != nil {
		t.Error("the zero Options created a log or limits")
	}
	for path, want := range map[string]string{
		"/":                `href="/metrics/seconds"`,
		"/metrics":         "windowstat_resources 0",
		"/metrics/seconds": "",
		"/live/":           "<html",
		"/nothing":         "not found",
	} {
		if _, body := get(t, x.Handler(), path); !strings.Contains(body, want) {
			t.Errorf("%s: no %q in %s", path, want, body)
		}
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
}

// New returns all errors together, each with the name of its field, and creates nothing.
func TestInvalidOptions(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	bad := push.Options{URL: "ftp://x", Interval: 1500 * time.Millisecond, Labels: map[string]string{"a-b": "c"}}
	_, err := exporter.New(exporter.Options{
		App: "a/b", Namespace: "1", MetricsPath: "/", LimitsFile: dir + ".yml",
		Collector: collector.Options{MaxResources: -1, RetireAfter: time.Second},
		Metrics:   prom.Options{By: "day", Namespace: "x"},
		Seconds:   prom.SecondsOptions{MaxBytes: -1, MaxSamples: -1, Namespace: "x", Sampler: new(sampler.Sampler)},
		Live:      live.Options{MaxRows: -1},
		Log:       metriclog.Options{Dir: dir, MaxFiles: -1, App: "x"},
		Sampler:   sampler.Options{Gatherer: prometheus.NewRegistry(), Prefix: "a-"},
		Push: []push.Options{
			{URL: "http://fine/"}, bad, {
				Format: push.VictoriaMetrics, Metrics: []string{"nothing"},
				URL: "http://x/", Namespace: "x",
			}, {URL: "http://fine/"},
		},
	})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`App: "a/b"`, `Namespace: "1"`, `MetricsPath: "/"`, "LimitsFile: ", "Collector.MaxResources: -1",
		"Collector.RetireAfter: 1s", `Metrics.By: "day"`, "Metrics.Namespace: is set by New",
		"Seconds.MaxBytes: -1", "Seconds.MaxSamples: -1", "Seconds.Namespace: ", "Seconds.Sampler: ",
		"Live.MaxRows: -1", "Log.MaxFiles: -1", "Log.App: ", `Sampler.Prefix: "a-"`, `Push[1].URL: "ftp://x"`,
		"Push[1].Interval: 1.5s", `Push[1].Labels: "a-b"`, `Push[2].Metrics: "nothing"`, "Push[2].Namespace: ",
		"Push[3]: has the same URL and labels as Push[0]",
	} {
		if !strings.Contains(err.Error(), "exporter: "+want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
	if strings.Contains(err.Error(), "Push[0].") {
		t.Errorf("a valid push is reported:\n%v", err)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error("errors.Is does not find the error of the limits file")
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the directory was created")
	}
}

// New does not change the slices and maps of the options.
func TestOptionsAreNotChanged(t *testing.T) {
	pushes := []push.Options{{URL: "http://x/", Labels: map[string]string{"zone": "a"}}}
	x, err := exporter.New(exporter.Options{Push: pushes})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close() //nolint:errcheck // no log is open
	if len(pushes[0].Labels) != 1 || pushes[0].Namespace != "" || pushes[0].Logger != nil {
		t.Errorf("%+v", pushes[0])
	}
}

// A log belongs to one Exporter at a time. New releases all files if it fails.
func TestNothingIsLeftOpen(t *testing.T) {
	dir := t.TempDir()
	options := exporter.Options{App: "shop", Log: metriclog.Options{Dir: dir}, Logger: quiet}
	first, err := exporter.New(options)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := exporter.New(options); err == nil || !strings.Contains(err.Error(), "exporter: Log.Dir: ") {
		t.Errorf("second Exporter: %v", err)
	}
	if _, err := prom.NewSeconds(first.Collector, prom.SecondsOptions{Log: first.Log}); err == nil ||
		!strings.Contains(err.Error(), "one per-second endpoint") {
		t.Errorf("second page on one log: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := exporter.New(options)
	if err != nil {
		t.Fatalf("the log is locked: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

func TestRunsOnce(t *testing.T) {
	x, err := exporter.New(exporter.Options{})
	if err != nil {
		t.Fatal(err)
	}
	stop := x.Start()
	if err := stop(); err != nil {
		t.Error(err)
	}
	if err := x.Run(t.Context()); err == nil {
		t.Error("Run succeeded twice")
	}
}

// pushes is a receiver of remote write.
type pushes struct {
	*httptest.Server
	mu   sync.Mutex
	text string
}

func newPushes(t *testing.T) *pushes {
	p := new(pushes)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		plain, _ := snappy.Decode(nil, body)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.text += string(plain)
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *pushes) has(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Contains(p.text, text)
}

// For each way to stop the service, calls that end during the shutdown are in the log: the last second is written after
// them.
func TestCallsEndDuringShutdown(t *testing.T) {
	t.Parallel()
	const calls = 5
	type endFunc = func(ctx context.Context, x *exporter.Exporter, pages net.Listener, shutdown func() error) error
	for name, end := range map[string]endFunc{
		"Run": func(ctx context.Context, x *exporter.Exporter, _ net.Listener, shutdown func() error) error {
			context.AfterFunc(ctx, func() { _ = shutdown() })
			return x.Run(ctx)
		},
		"Serve": func(ctx context.Context, x *exporter.Exporter, l net.Listener, shutdown func() error) error {
			context.AfterFunc(ctx, func() { _ = shutdown() })
			return x.Serve(ctx, l)
		},
		"Start": func(ctx context.Context, x *exporter.Exporter, _ net.Listener, shutdown func() error) error {
			stop := x.Start()
			<-ctx.Done()
			go shutdown() //nolint:errcheck // returns during the shutdown
			return stop()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			x, err := exporter.New(exporter.Options{App: "shop", Log: metriclog.Options{Dir: dir}, Logger: quiet})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			var entered sync.WaitGroup
			entered.Add(calls)
			service := httptest.NewServer(httpstat.Handler(x.Collector, func(*http.Request) string { return "slow" },
				http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
					entered.Done()
					<-ctx.Done()
					time.Sleep(1500 * time.Millisecond) // longer than any second
				})))
			for range calls {
				go func() {
					if resp, err := http.Get(service.URL); err == nil {
						_ = resp.Body.Close()
					}
				}()
			}
			go func() { entered.Wait(); cancel() }()
			pages, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer pages.Close() //nolint:errcheck // Serve may have closed it
			shutdown := func() error { return service.Config.Shutdown(context.Background()) }
			if err := end(ctx, x, pages, shutdown); err != nil {
				t.Error(err)
			}
			rows, err := metriclog.Searcher{Dir: dir}.Search(metriclog.Query{})
			if err != nil {
				t.Fatal(err)
			}
			defer rows.Close() //nolint:errcheck // only read
			var pass, complete int64
			for row := range rows.All() {
				if row.Resource == "slow" {
					pass, complete = pass+row.Pass, complete+row.Success
				}
			}
			if pass != calls || complete != calls {
				t.Errorf("%d passes and %d completions in the log, want %d", pass, complete, calls)
			}
		})
	}
}

// A server that stops with the same context may begin another call while Run checks for calls in flight. Run waits for
// this call.
func TestCallBeginsDuringShutdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x, err := exporter.New(exporter.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- x.Run(ctx) }()
		synctest.Wait()
		cancel()
		synctest.Wait() // Run has observed the cancellation
		e := x.Collector.Resource("slow").Enter()
		time.AfterFunc(3*time.Second, func() { e.Exit(nil) })
		begin := time.Now()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if waited := time.Since(begin); waited < 3*time.Second {
			t.Errorf("Run ended %v after the begin of a call of three seconds", waited)
		}
	})
}

// A call that never ends does not block the end of Run.
func TestEndlessCall(t *testing.T) {
	x, err := exporter.New(exporter.Options{Drain: 50 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	x.Collector.Resource("stuck").Enter()
	stop := x.Start()
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// Before Serve closes a connection, it records whether the scraper has read the last response. The next process does
// not send read seconds again.
func TestServeSavesReceipts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for process := range 3 {
		x, err := exporter.New(exporter.Options{App: "shop", Logger: quiet, Log: metriclog.Options{Dir: dir}})
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		served := make(chan error, 1)
		go func() { served <- x.Serve(ctx, l) }()
		x.Collector.Resource(fmt.Sprint("of process ", process)).Block("")
		// Until the second is over.
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(1100 * time.Millisecond)))
		r, err := http.NewRequestWithContext(ctx, http.MethodGet,
			"http://"+l.Addr().String()+"/metrics/seconds?cursor=a", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "shop:9719"
		transport := &http.Transport{}
		defer transport.CloseIdleConnections()
		resp, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		for p := range process + 1 {
			sample := fmt.Sprint(`block{resource="of process `, p, `"} 1 `)
			if has := bytes.Contains(page, []byte(sample)); has != (p == process) {
				t.Errorf("second of process %d in the response of process %d: %t", p, process, has)
			}
		}
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
}

// Serve sets the label instance of pushes to host and port, unless it is configured. Serve ends even if a live page is
// open.
func TestServe(t *testing.T) {
	t.Parallel()
	receiver := newPushes(t)
	x, err := exporter.New(exporter.Options{App: "shop", Logger: quiet, Push: []push.Options{
		{URL: receiver.URL + "/a"}, {URL: receiver.URL + "/b", Labels: map[string]string{"instance": "given"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- x.Serve(ctx, l) }()
	base := "http://" + l.Addr().String()
	stream, err := http.Get(base + "/live/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close() //nolint:errcheck // only read
	if _, err := stream.Body.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	x.Collector.Resource("a").Block("")
	resp, err := http.Get(base + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	for _, target := range []string{"/a", "/b"} { // each push has its own series
		line := `windowstat_push_lag_seconds{format="remote_write",target="` + receiver.URL + target + `"} `
		if !strings.Contains(string(page), line) {
			t.Errorf("no %s", line)
		}
	}
	cancel()
	if err := <-served; err != nil {
		t.Error(err)
	}
	if _, err := io.Copy(io.Discard, stream.Body); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("live page: %v", err)
	}
	host, _ := os.Hostname()
	_, port, _ := net.SplitHostPort(l.Addr().String())
	for _, instance := range []string{net.JoinHostPort(host, port), "given"} {
		if !receiver.has(instance) {
			t.Errorf("no push with the instance %s", instance)
		}
	}
	if receiver.has(host + "\x12") { // an instance without a port
		t.Error("push with an instance without a port")
	}
	if _, body := get(t, x.Handler(), "/metrics"); strings.Contains(body, "windowstat_push_") {
		t.Error("ended pushes have metrics")
	}
}

// If the address is in use, ListenAndServe closes all files that New opened.
func TestListenAndServeWithUsedAddress(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close() //nolint:errcheck // only occupies the address
	options := exporter.Options{App: "shop", Log: metriclog.Options{Dir: t.TempDir()}, Logger: quiet}
	var kept []*exporter.Exporter // prevents finalizers from closing their files
	for range 2 {
		x, err := exporter.New(options)
		if err != nil {
			t.Fatal(err)
		}
		kept = append(kept, x)
		if err := x.ListenAndServe(t.Context(), taken.Addr().String()); err == nil ||
			!strings.Contains(err.Error(), "in use") {
			t.Error(err)
		}
	}
	runtime.KeepAlive(kept)
}

// A service continues after the last second of the previous process's log. Each scraper gets the seconds that it has
// not received, without any option for this.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		options := exporter.Options{App: "shop", Log: metriclog.Options{Dir: t.TempDir()}, Logger: quiet}
		var all string
		for range 3 {
			x, err := exporter.New(options)
			if err != nil {
				t.Fatal(err)
			}
			stop := x.Start()
			x.Collector.Resource("a").Block("")
			_, body := get(t, x.Handler(), "/metrics/seconds?cursor=a&metric=persecond_block&resource=a")
			all += body
			if err := stop(); err != nil {
				t.Fatal(err)
			}
		}
		x, err := exporter.New(options)
		if err != nil {
			t.Fatal(err)
		}
		defer x.Close() //nolint:errcheck // never runs
		_, body := get(t, x.Handler(), "/metrics/seconds?cursor=a&metric=persecond_block&resource=a")
		blocks, seen := 0, map[string]bool{}
		for line := range strings.Lines(all + body) {
			line, _ = strings.CutPrefix(line, `windowstat_persecond_block{resource="a"} `)
			if value, at, ok := strings.Cut(line, " "); ok && !strings.HasPrefix(line, "#") {
				if seen[at] {
					t.Errorf("duplicate second %s", at)
				}
				seen[at] = true
				if value == "1" {
					blocks++
				}
			}
		}
		if blocks != 3 {
			t.Errorf("%d blocks, want 3:\n%s", blocks, all+body)
		}
	})
}

// The next Exporter pushes the seconds that the previous one logged but could not push.
func TestNextExporterPushesTheRest(t *testing.T) {
	t.Parallel()
	var away atomic.Bool
	var mu sync.Mutex
	var got strings.Builder
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := gzip.NewReader(r.Body)
		if away.Load() || err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		_, _ = io.Copy(&got, body)
	}))
	defer server.Close()
	options := exporter.Options{
		App: "shop", Log: metriclog.Options{Dir: t.TempDir()}, Logger: quiet, Drain: -1,
		Push: []push.Options{{Format: push.VictoriaMetrics, URL: server.URL, Drain: time.Second}},
	}
	away.Store(true)
	for n := range 2 {
		x, err := exporter.New(options)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			for range 41 {
				x.Collector.Resource("a").Block("")
			}
		}
		stop := x.Start()
		if err := stop(); err != nil {
			t.Error(err)
		}
		away.Store(false)
	}
	if !strings.Contains(got.String(), `windowstat_persecond_block{instance="`) ||
		!strings.Contains(got.String(), "} 41 ") {
		t.Errorf("%s", got.String())
	}
}
