package adapters_test

import (
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// newCollector returns a Collector with default options.
func newCollector(t testing.TB) *collector.Collector {
	t.Helper()
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// counted waits until all requests have ended, and returns the counts of each resource. An example of these counts is
// "200: 2, -: 1, blocked: 1, exceptions: 1". The "-" stands for calls without a code.
func counted(t testing.TB, c *collector.Collector) map[string]string {
	t.Helper()
	got := map[string]string{}
	for _, r := range c.Seal().Resources {
		for deadline := time.Now().Add(10 * time.Second); r.InFlight() > 0; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: %d in flight", r.Name(), r.InFlight())
			}
		}
		var list []string
		for code, n := range r.View().Codes() {
			if n > 0 {
				list = append(list, fmt.Sprintf("%s: %d", max(code.String(), "-"), n))
			}
		}
		total := r.Snapshot(nil).Total
		if total.Block > 0 {
			list = append(list, fmt.Sprintf("blocked: %d", total.Block))
		}
		if total.Exception > 0 {
			list = append(list, fmt.Sprintf("exceptions: %d", total.Exception))
		}
		got[r.Name()] = strings.Join(list, ", ")
	}
	return got
}

// wantCounted compares the result of counted with want.
func wantCounted(t testing.TB, c *collector.Collector, want map[string]string) {
	t.Helper()
	if got := counted(t, c); !maps.Equal(got, want) {
		t.Errorf("counted %v, want %v", got, want)
	}
}

// serve starts a server, and returns a function that sends a request to it. The function returns the status of the
// response, or 0 if there is no response.
func serve(t testing.TB, h http.Handler) func(method, path string) int {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.Start()
	t.Cleanup(srv.Close)
	client := srv.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return func(method, path string) int {
		req, err := http.NewRequest(method, srv.URL+path, strings.NewReader("x"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			return 0
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusSwitchingProtocols {
			_, _ = io.Copy(io.Discard, resp.Body)
		}
		return resp.StatusCode
	}
}
