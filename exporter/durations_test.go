package exporter_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/snappy"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/live"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/exporter/push"
	"github.com/windowstat/windowstat/exporter/vm"
)

// rtMetrics matches the metrics of response times.
var rtMetrics = regexp.MustCompile(`windowstat_[a-z_]*rt_[a-z_]+`)

// Without response times, no exporter has any; otherwise each exporter has them.
func TestDurationsUnknown(t *testing.T) {
	for _, untimed := range []bool{false, true} {
		now := time.Now().Add(-time.Minute).Truncate(time.Second)
		var mu sync.Mutex
		advance := func(d time.Duration) { mu.Lock(); defer mu.Unlock(); now = now.Add(d) }
		c, err := collector.New(collector.Options{
			DurationsUnknown: untimed,
			Now:              func() time.Time { mu.Lock(); defer mu.Unlock(); return now },
		})
		if err != nil {
			t.Fatal(err)
		}
		var pushed []byte
		receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			plain, _ := snappy.Decode(nil, body)
			mu.Lock()
			defer mu.Unlock()
			pushed = append(pushed, plain...)
		}))
		labels := map[string]string{"job": "shop", "instance": "a"}
		push, err := push.New(c, push.Options{URL: receiver.URL, Labels: labels})
		if err != nil {
			t.Fatal(err)
		}
		seconds, err := prom.NewSeconds(c, prom.SecondsOptions{})
		if err != nil {
			t.Fatal(err)
		}
		pages, err := prom.Handler(c, prom.Options{})
		if err != nil {
			t.Fatal(err)
		}
		victoria, err := vm.New(c, vm.Options{})
		if err != nil {
			t.Fatal(err)
		}
		page, err := live.New(c, live.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, e, _ := c.Enter(t.Context(), "GET /", collector.Inbound())
		advance(3 * time.Millisecond)
		e.Exit(nil)
		advance(time.Second)

		outs := map[string]string{}
		get := func(what string, h http.Handler, url string) string {
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, httptest.NewRequest("GET", url, nil))
			if rec.Code != http.StatusOK {
				t.Fatalf("%s: %d %s", what, rec.Code, rec.Body)
			}
			return rec.Body.String()
		}
		outs["metrics"] = get("metrics", pages, "/metrics")
		outs["seconds"] = get("seconds", seconds, "/metrics/seconds?window=10s")
		var b strings.Builder
		victoria.WriteMetrics(&b)
		outs["vm"] = b.String()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		advance(980 * time.Millisecond) // Run waits for the end of the second
		ended := make(chan error)
		go func() { ended <- push.Run(ctx) }()
		for running := true; running; {
			select {
			case err := <-ended:
				if running = false; err != nil {
					t.Fatal(err)
				}
			case <-time.After(time.Millisecond):
				advance(time.Millisecond)
			}
		}
		receiver.Close()
		outs["remote write"] = string(pushed)

		for what, out := range outs {
			if !strings.Contains(out, "GET /") {
				t.Errorf("%s does not have the resource:\n%q", what, out)
			}
			if found := rtMetrics.FindString(out); (found == "") != untimed {
				t.Errorf("untimed is %v, but %s has %q", untimed, what, found)
			}
		}
		want := ",3000,3000]"
		if untimed {
			want = ",-1,-1]"
		}
		if got := get("live", page, "/live/seconds?after="); !strings.Contains(got, want) {
			t.Errorf("untimed is %v, but the live page has no %s: %s", untimed, want, got)
		}
	}
}
