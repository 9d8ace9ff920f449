package main

import (
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
)

// top reads an endpoint with TLS and a password if it has the client configuration, and fails without.
func TestTop(t *testing.T) {
	t.Parallel()
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	page, err := prom.NewSeconds(c, prom.SecondsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "viewer" || password != "secret" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		page.ServeHTTP(w, r)
	}))
	defer server.Close()
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	ca := write("ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	tls := fmt.Sprintf("tls_config: {ca_file: %q}\n", ca)
	good := write("good.yml", tls+"basic_auth: {username: viewer, password: secret}\n")
	bad := write("bad.yml", tls+"basic_auth: {username: viewer, password: wrong}\n")
	for _, tc := range []struct {
		args   []string
		status int
		want   string
	}{
		{
			[]string{"--http.config.file", good, server.URL},
			0,
			"second\tpass\tblock\texception\trt_mean_ms\trt_p99_ms\tin_flight_avg\tpeak\tkind\tresource\n",
		},
		{[]string{"--http.config.file", bad, server.URL}, 1, "windowstat: " + server.URL + " cannot be read:\n" +
			"windowstat: " + server.URL + "/metrics/seconds: 401 Unauthorized: who are you?\n"},
		{[]string{server.URL}, 1, "certificate"},
		{
			[]string{"http" + strings.TrimPrefix(server.URL, "https")},
			1,
			"400 Bad Request: Client sent an HTTP request to an HTTPS server.",
		},
	} {
		p := launch(t, append([]string{"top", "--once"}, tc.args...)...)
		if status := p.wait(t); status != tc.status || !strings.Contains(p.output(), tc.want) ||
			status == 0 && p.output() != tc.want {
			t.Errorf("%q: status %d\n%s", tc.args, status, p.output())
		}
	}
}

// top reads the pages of demo, with any form of the address.
func TestTopOfDemo(t *testing.T) {
	t.Parallel()
	demo := launch(t, "demo", anyPort, "--rate=100", "--web.telemetry-path=/stats")
	page := demo.find(t, `metrics +(http\S+)`)
	demo.find(t, `(running)`)
	for _, url := range []string{page, page + "/seconds"} {
		p := launch(t, "top", "--once", "--sort=resource", url)
		if status := p.wait(t); status != 0 || !strings.HasPrefix(p.output(), "second\tpass\t") {
			t.Errorf("%s: status %d\n%s", url, status, p.output())
		}
	}
	if status := demo.end(t); status != 0 {
		t.Errorf("status %d:\n%s", status, demo.output())
	}
}

// top rejects the page of windowstat sentinel, and names the commands to use instead.
func TestTopOfSentinel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	second := time.Now().Add(-time.Minute)
	row := fmt.Sprintf("%d|x|GET /users|42|3|40|1|12|0|0|0\n", second.Unix()*1000)
	path := filepath.Join(dir, "shop-metrics.log."+second.Format(time.DateOnly))
	if err := os.WriteFile(path, []byte(row), 0o600); err != nil {
		t.Fatal(err)
	}
	sentinel := launch(t, "sentinel", anyPort, "--dir", dir)
	page := sentinel.find(t, `metrics +(http\S+)`)
	want := "windowstat: " + page + " cannot be read:\n" +
		"windowstat: top cannot show the metric logs of Sentinel; use the dashboards, or\n" +
		"windowstat: windowstat log --follow --dir DIRECTORY on the machine of the logs\n"
	p := launch(t, "top", "--once", page)
	if status := p.wait(t); status != 1 || p.output() != want {
		t.Errorf("status %d:\n%s", status, p.output())
	}
	if status := sentinel.end(t); status != 0 {
		t.Errorf("status %d:\n%s", status, sentinel.output())
	}
}

// All errors in the arguments are reported together with status 2. Other errors have status 1.
func TestTopBadArguments(t *testing.T) {
	t.Parallel()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	free.Close()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("nonsense: true\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args   string
		status int
		want   []string
	}{
		{"top --help", 0, []string{"--once", "--sort", "[ADDRESS...]", "127.0.0.1:9719"}},
		{"top", 1, []string{"needs a terminal", "--once"}},
		{"top --nonsense", 2, []string{"-nonsense"}},
		{
			"top --sort=size --http.config.file=" + file + " ftp://x", 2,
			[]string{
				`--sort: "size" is not one of`, "resource, pass, block", "--http.config.file:", "nonsense",
				`"ftp://x" is not host:port`,
			},
		},
		{
			"top --http.config.file= --sort= http://x:99999", 2,
			[]string{"--http.config.file: is empty", "--sort: is empty", `port "99999"`},
		},
		{"top --http.config.file=" + file + ".missing", 2, []string{"--http.config.file:", "no such file"}},
		{"top a:1 http://a:1", 2, []string{"a:1 is given twice"}},
		{
			"top a:1 a:1/metrics/seconds http://b/metrics B:80", 2,
			[]string{"a:1/metrics/seconds is given twice", "B:80 is given twice"},
		},
		{"top nonsense x:y", 2, []string{`"nonsense" is not host:port`, "invalid port"}},
		{"top http://user:secret@x", 2, []string{"--http.config.file"}},
		{"top --once http://" + free.Addr().String(), 1, []string{"cannot be read", "connection refused"}},
	} {
		p := launch(t, strings.Fields(tc.args)...)
		if status := p.wait(t); status != tc.status {
			t.Errorf("%s: status %d, want %d", tc.args, status, tc.status)
		}
		for _, part := range tc.want {
			if !strings.Contains(p.output(), part) {
				t.Errorf("%s: no %q in\n%s", tc.args, part, p.output())
			}
		}
		for line := range strings.Lines(p.output()) {
			if len([]rune(line)) > 81 && tc.status != 0 &&
				!strings.Contains(line, "http.config.file") { // other packages word the errors in files
				t.Errorf("%s: a line of %d characters: %s", tc.args, len([]rune(line)), line)
			}
		}
		if strings.Contains(p.output(), "secret") {
			t.Errorf("%s: the password is in\n%s", tc.args, p.output())
		}
	}
}
