package push

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/table"
)

// A short job sends everything that it counted, and the histogram if selected.
func TestVictoriaMetrics(t *testing.T) {
	var mu sync.Mutex
	var lines []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			t.Error(err)
			return
		}
		b, err := io.ReadAll(z)
		if err != nil || r.Header.Get("Content-Encoding") != "gzip" || r.URL.Path != "/api/v1/import/prometheus" {
			t.Error(err, r.URL, r.Header)
		}
		for line := range strings.Lines(string(b)) {
			lines = append(lines, line)
		}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer server.Close()
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := New(c, Options{
		Format:    VictoriaMetrics,
		URL:       server.URL + "/api/v1/import/prometheus",
		Labels:    map[string]string{"job": "nightly", "instance": "a:1"},
		Histogram: true, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	stop := p.Start()
	const calls = 50
	for range calls {
		e := c.Resource("a").Enter()
		time.Sleep(10 * time.Millisecond)
		e.Exit(nil)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	passed, ended := 0, 0
	for _, line := range lines {
		var v, at int
		const labels = `{instance="a:1",job="nightly",resource="a"} `
		if rest, ok := strings.CutPrefix(line, "windowstat_persecond_pass"+labels); ok {
			if _, err := fmt.Sscan(rest, &v, &at); err != nil || at%1000 != 0 {
				t.Fatalf("%s: %v", line, err)
			}
			passed += v
		}
		if rest, ok := strings.CutPrefix(line, "windowstat_persecond_rt_distribution_seconds_count"+labels); ok {
			if _, err := fmt.Sscan(rest, &v, &at); err != nil {
				t.Fatal(err)
			}
			ended += v
		}
	}
	if passed != calls || ended != calls {
		t.Errorf("%d calls passed, and %d are in the histograms; want %d", passed, ended, calls)
	}
}

// A series of a Sampler may have any name in UTF-8. VictoriaMetrics gets it unchanged, in quotes.
func TestVictoriaMetricsNames(t *testing.T) {
	e := VictoriaMetrics.encoder()
	f := &table.Family{Name: "queue.length", Type: table.Gauge, Help: "x"}
	e.Series(f, []string{"k8s.pod"}, []string{"a"})
	e.Value(1, 2)
	z, err := gzip.NewReader(bytes.NewReader(e.Body()))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if want := "{\"queue.length\",\"k8s.pod\"=\"a\"} 2 1000\n"; err != nil || !strings.HasSuffix(string(b), want) {
		t.Errorf("%v, the body is\n%swant\n%s", err, b, want)
	}
}
