package prom_test

import (
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/windowstat/windowstat/exporter/prom"
)

var update = flag.Bool("update", false, "write testdata instead of comparing with it")

// volatile matches the labels and values that differ between processes and versions of Go.
var volatile = regexp.MustCompile(`(?m)^(windowstat_(?:build_info|memory_bytes|memory_reserved_bytes|` +
	`persecond_run|scrape_duration_seconds))(\{.*\})? \S+`)

// The bytes of the pages stay the same, except the HELP texts: names, labels, values, order and escaping.
func TestGoldenPages(t *testing.T) {
	c := busy(t)
	metrics, err := prom.Handler(c, prom.Options{})
	if err != nil {
		t.Fatal(err)
	}
	perSecond, err := prom.NewSeconds(c, prom.SecondsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	const openMetrics = "application/openmetrics-text;version=1.0.0"
	for name, page := range map[string]struct {
		handler       http.Handler
		query, accept string
	}{
		"metrics.txt":         {handler: metrics},
		"metrics.openmetrics": {handler: metrics, accept: openMetrics},
		"seconds.txt":         {handler: perSecond, query: "?histogram=classic"},
		"seconds.openmetrics": {handler: perSecond, accept: openMetrics},
		"seconds.vmrange":     {handler: perSecond, query: "?histogram=vmrange"},
	} {
		r := httptest.NewRequest("GET", "/"+page.query, nil)
		r.Header.Set("Accept", page.accept)
		rec := httptest.NewRecorder()
		page.handler.ServeHTTP(rec, r)
		body, err := io.ReadAll(rec.Body)
		if err != nil || rec.Code != http.StatusOK {
			t.Fatalf("%s: %d, %v", name, rec.Code, err)
		}
		var got strings.Builder
		for line := range strings.Lines(volatile.ReplaceAllString(string(body), "$1 -")) {
			if kind, rest, _ := strings.Cut(line, " "); kind == "#" && strings.HasPrefix(rest, "HELP ") {
				continue
			}
			// Remove the metrics of the Go runtime, the process and promhttp.
			if strings.HasPrefix(strings.TrimPrefix(line, "# TYPE "), "windowstat_") || line == "# EOF\n" {
				got.WriteString(line)
			}
		}
		path := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(path, []byte(got.String()), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got.String() == string(want) {
			continue
		}
		gotLines, wantLines := strings.Split(got.String(), "\n"), strings.Split(string(want), "\n")
		for i := range max(len(gotLines), len(wantLines)) {
			if i >= len(gotLines) || i >= len(wantLines) || gotLines[i] != wantLines[i] {
				t.Errorf("%s differs from line %d on; update it with -update", name, i+1)
				break
			}
		}
	}
}
