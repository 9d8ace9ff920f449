package exporter_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/sentinellog"
)

// With Options.Sentinel, the pages have the seconds of Sentinel's logs, and there is no live page.
func TestSentinel(t *testing.T) {
	dir := t.TempDir()
	second := time.Now().Add(-time.Minute)
	row := fmt.Sprintf("%d|x|GET /users|42|3|40|1|12|0|0|0\n", second.UnixMilli()/1000*1000)
	path := filepath.Join(dir, "shop-metrics.log."+second.Format(time.DateOnly))
	if err := os.WriteFile(path, []byte(row), 0o600); err != nil {
		t.Fatal(err)
	}
	o := exporter.Options{
		App: "follower", Logger: slog.New(slog.DiscardHandler), Drain: -1,
		Sentinel: sentinellog.Options{Dir: dir, StateDir: t.TempDir()},
	}
	x, err := exporter.New(o)
	if err != nil {
		t.Fatal(err)
	}
	for page, want := range map[string]string{
		"/metrics/seconds?window=2m": `windowstat_persecond_block{app="shop",resource="GET /users"} 3 `,
		"/metrics":                   `windowstat_sentinel_rows_total{app="shop"} 1`,
		"/live/":                     "no live page",
		"/":                          "follower",
	} {
		w := httptest.NewRecorder()
		x.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, page, nil))
		if !strings.Contains(w.Body.String(), want) || page == "/" && strings.Contains(w.Body.String(), "/live/") {
			t.Errorf("%s has no %q:\n%s", page, want, w.Body)
		}
		if status := http.StatusNotImplemented; (w.Code == status) != (page == "/live/") { // as windowstat top expects
			t.Errorf("%s: status %d", page, w.Code)
		}
	}
	if _, err := exporter.New(o); err == nil || !strings.Contains(err.Error(), "Sentinel.StateDir") {
		t.Errorf("a second follower: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := x.Run(ctx); err != nil {
		t.Error(err)
	}
	if x, err = exporter.New(o); err != nil { // the lock was released
		t.Fatal(err)
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
	o.Log = metriclog.Options{Dir: dir}
	o.Sentinel.Lag = time.Millisecond
	if err := o.Check(); err == nil || !strings.Contains(err.Error(), "Log") ||
		!strings.Contains(err.Error(), "Sentinel.Lag") {
		t.Errorf("invalid options: %v", err)
	}
}
