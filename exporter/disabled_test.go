package exporter_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/windowstat/windowstat/collector/httpstat"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/push"
)

// A service runs unchanged with Options.Disabled. It writes, sends and counts nothing, and its pages can be scraped.
func TestDisabled(t *testing.T) {
	pushed := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("pushed") }))
	defer pushed.Close()
	dir := filepath.Join(t.TempDir(), "log")
	x, err := exporter.New(exporter.Options{
		Disabled: true, App: "shop", Log: metriclog.Options{Dir: dir}, Push: []push.Options{{URL: pushed.URL}},
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	if got := httpstat.Mux(x.Collector, mux); got != http.Handler(mux) {
		t.Errorf("Mux returns %T", got)
	}
	query := x.Collector.Resource("query")
	failed := errors.New("failed")
	if err := query.Do(func() error { return failed }); !errors.Is(err, failed) {
		t.Error(err)
	}
	if e, err := query.TryEnter(); err != nil {
		t.Error(err)
	} else {
		e.Exit(nil)
	}
	stop := x.Start()
	for path, want := range map[string]string{
		"/metrics": "# windowstat is disabled", "/metrics/seconds?cursor=a": "# windowstat is disabled",
		"/live/": "# windowstat is disabled", "/-/healthy": "healthy", "/": "shop",
	} {
		rec := httptest.NewRecorder()
		x.Handler().ServeHTTP(rec, httptest.NewRequest("GET", path, nil))
		if rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), want) {
			t.Errorf("%s: %d %q", path, rec.Code, rec.Body)
		}
		if path == "/metrics" {
			parser := expfmt.NewTextParser(model.LegacyValidation)
			if families, err := parser.TextToMetricFamilies(rec.Body); err != nil || len(families) > 0 {
				t.Errorf("%v, %v", families, err)
			}
		}
	}
	x.ConnState(nil, http.StateNew)
	if err := stop(); err != nil {
		t.Error(err)
	}
	if err := x.Run(t.Context()); err == nil {
		t.Error("Run ran twice")
	}
	if names, _ := filepath.Glob(dir); len(names) > 0 {
		t.Errorf("wrote %q", names)
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
	if _, err := exporter.New(exporter.Options{Disabled: true, MetricsPath: "no path"}); err == nil {
		t.Error("invalid options were not reported")
	}
}

// A disabled Exporter serves until its context ends.
func TestServeDisabled(t *testing.T) {
	x, err := exporter.New(exporter.Options{Disabled: true})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(x.Handler())
	defer server.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- x.ListenAndServe(ctx, "127.0.0.1:0") }()
	for {
		resp, err := http.Get(server.URL + "/-/ready")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			break
		}
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func BenchmarkDisabled(b *testing.B) {
	x, err := exporter.New(exporter.Options{Disabled: true})
	if err != nil {
		b.Fatal(err)
	}
	query := x.Collector.Resource("query")
	for b.Loop() {
		e := query.Enter()
		e.Exit(nil)
	}
}
