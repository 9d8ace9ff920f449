package prom_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
)

// The cost of a scrape includes only requests of servers. A client that reads more or fewer seconds does not change it.
func TestScrapeCostExcludesOtherClients(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c, err := collector.New(collector.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	page := newScraper(t, c, prom.SecondsOptions{})
	samples := func() (n float64) {
		for _, m := range c.Metrics() {
			if m.Name == "scrape_samples" {
				m.Read(func(v float64, _ ...string) { n = v })
			}
		}
		return n
	}
	ask := func(query, header string) {
		if err := c.Resource("checkout").Do(func() error { return nil }); err != nil {
			t.Fatal(err)
		}
		now = now.Add(5 * time.Second)
		r := httptest.NewRequest(http.MethodGet, "/metrics/seconds"+query, nil)
		if header != "" {
			r.Header.Set(header, "10")
		}
		w := httptest.NewRecorder()
		page.page.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Fatalf("%s: %d", query, w.Code)
		}
	}
	for _, tc := range []struct {
		what, query, header string
		scrape              bool
	}{
		{"a client before the first scrape", "?window=5s", "", false},
		{"a scrape with a cursor", "?cursor=prometheus", "", true},
		{"a browser", "", "", false},
		{"windowstat top", "?window=2s", "", false},
		{"a scrape without a cursor", "?window=4s", "X-Prometheus-Scrape-Timeout-Seconds", true},
	} {
		before := samples()
		ask(tc.query, tc.header)
		if changed := samples() != before; changed != tc.scrape {
			t.Errorf("%s: %v samples, and %v before", tc.what, samples(), before)
		}
	}
}
