package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A restarted proxy has the names that it earned before. Routes have series from the start. Paths without a successful
// response have no series. An unreadable state file is renamed, and the proxy starts.
func TestProxyRemembersNames(t *testing.T) {
	t.Parallel()
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/jobs/nightly" {
			http.NotFound(w, r)
		}
	}))
	defer upstream.Close()
	dir := t.TempDir()
	state, routes := filepath.Join(dir, "proxy-names.json"), filepath.Join(dir, "routes")
	if err := os.WriteFile(routes, []byte("# of the shop\nPOST /checkout\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for run, want := range []string{
		`"POST /checkout" 0, "GET /jobs/nightly" 1, "unmatched" 2`,
		`"POST /checkout" 0, "GET /jobs/nightly" 2, "unmatched" 1`,
		`"POST /checkout" 0, "GET /jobs/nightly" 1, "unmatched" 2`,
	} {
		p := launch(t, "proxy", anyPort, "--upstream", upstream.URL, "--proxy.listen-address=127.0.0.1:0",
			"--metric-log.dir", dir, "--routes", routes)
		front, page := p.find(t, `proxy +(http\S+)`), p.find(t, `metrics +(http\S+)`)
		_, metrics := get(t, page)
		if !strings.Contains(metrics, `windowstat_pass_total{resource="POST /checkout"} 0`+"\n") {
			t.Error("a route has no series from the start")
		}
		for _, path := range []string{"/jobs/nightly", "/jobs/nightly", "/wp-admin"} {
			get(t, front+path)
		}
		metrics = settled(t, page)
		for _, line := range strings.Split(want, ", ") {
			name, n, _ := strings.Cut(line, `" `)
			if !strings.Contains(metrics, fmt.Sprintf("windowstat_pass_total{resource=%s\"} %s\n", name, n)) {
				t.Errorf("run %d: no %s", run, line)
			}
		}
		if n := strings.Count(metrics, "windowstat_pass_total{"); n != 3 {
			t.Errorf("run %d: %d resources", run, n)
		}
		if status := p.end(t); status != 0 {
			t.Errorf("status %d:\n%s", status, p.output())
		}
		if renamed := strings.Contains(p.output(), "renamed the file to "+state+".unreadable"); renamed != (run == 2) {
			t.Errorf("run %d: %s", run, p.output())
		}
		if run == 1 {
			if err := os.WriteFile(state, []byte(`[{"name"`), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Other spellings of a path, which a tolerant service treats as equal, do not bypass the limit of a route. Spellings
// that count for unmatched do not bypass its limit.
func TestSpellingsDoNotBypassALimit(t *testing.T) {
	t.Parallel()
	upstream, _ := rawUpstream(t, okAnswer)
	limits := filepath.Join(t.TempDir(), "limits.yml")
	if err := os.WriteFile(limits, []byte("limits:\n- {resource: POST /checkout, qps: 0}\n- {resource: unmatched, "+
		"qps: 0}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	spellings := []string{
		"POST /checkout", "POST /checkout/", "POST /Checkout", "POST /checkout;x=1", "POST /checkout%20",
		"post /checkout", "POST /images/..;/checkout",
		"POST /images/%2e%2e/checkout", "POST //checkout",
	}
	for arg, more := range map[string][]string{"--loose-paths": nil, "--routes-only": {
		"POST /images\\..\\checkout",
		"POST /%252e/checkout",
	}} {
		p, address := startProxy(t, upstream, "--route=POST /checkout", "--limits.file="+limits, arg, "--skip=/images/")
		for _, request := range slices.Concat(spellings, more) {
			if got := send(t, address, request+" HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\nConnection: close\r\n"+
				"\r\n"); !strings.HasPrefix(got, "HTTP/1.1 429 ") {
				t.Errorf("%s, %s: %.100q", arg, request, got)
			}
		}
		if got := send(t, address, "GET /images/a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"+
			"\r\n"); !strings.HasPrefix(got, "HTTP/1.1 200 ") {
			t.Errorf("%s: a skipped request: %.100q", arg, got)
		}
		p.end(t)
	}
}

// With --routes-only, only routes have their own names, for any response of the service.
func TestProxyOfRoutesOnly(t *testing.T) {
	t.Parallel()
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer upstream.Close()
	p := launch(t, "proxy", anyPort, "--upstream", upstream.URL, "--proxy.listen-address=127.0.0.1:0", "--routes-only",
		"--route=GET /users/{id}")
	front := p.find(t, `proxy +(http\S+)`)
	for _, path := range []string{"/users/jane", "/users/joe", "/a", "/a", "/users/jane%2Fx"} {
		get(t, front+path)
	}
	metrics := settled(t, p.find(t, `metrics +(http\S+)`))
	for _, line := range []string{
		`windowstat_pass_total{resource="GET /users/{id}"} 3`,
		`windowstat_pass_total{resource="unmatched"} 2`, "windowstat_unearned_events_total 0",
	} {
		if !strings.Contains(metrics, line+"\n") {
			t.Errorf("no %q on the page", line)
		}
	}
	if status := p.end(t); status != 0 {
		t.Errorf("status %d", status)
	}
}
