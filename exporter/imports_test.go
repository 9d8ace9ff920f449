package exporter_test

import (
	"flag"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// A program that imports the packages, as this test does, keeps its default mux, its flags and its registry.
// Prometheus's client configuration once added /debug/requests to the mux: a service with "GET /" panicked at startup,
// and other services exposed traces to untrusted clients. client_golang is the only exception: it registers its Go and
// process collectors, and imports expvar, which serves GET /debug/vars.
func TestImportsRegisterNothing(t *testing.T) {
	if importsTested.Swap(true) {
		t.Skip("the first run has registered a pattern") // with -count
	}
	for _, path := range []string{"/", "/debug/requests", "/debug/events", "/debug/pprof/", "/metrics"} {
		if _, pattern := http.DefaultServeMux.Handler(httptest.NewRequest("GET", path, nil)); pattern != "" {
			t.Errorf("the default mux serves %s: %s", path, pattern)
		}
	}
	http.HandleFunc("GET /{$}", func(http.ResponseWriter, *http.Request) {}) // no conflict
	flag.VisitAll(func(f *flag.Flag) {
		if !strings.HasPrefix(f.Name, "test.") && f.Name != "update" {
			t.Errorf("the flag -%s", f.Name)
		}
	})
	families, err := prometheus.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if name := f.GetName(); !strings.HasPrefix(name, "go_") && !strings.HasPrefix(name, "process_") {
			t.Errorf("the metric %s", name)
		}
	}
}

var importsTested atomic.Bool

// Package exporter does not import packages that only the command needs.
func TestImportsAreFew(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"net/http/pprof", "golang.org/x/net/trace",
		"github.com/prometheus/common/config", "github.com/urfave/cli/v2", "github.com/prometheus/exporter-toolkit/web",
	} {
		if strings.Contains("\n"+string(out), "\n"+path+"\n") {
			t.Errorf("package exporter imports %s", path)
		}
	}
}
