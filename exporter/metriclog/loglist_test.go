package metriclog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// Logs lists logs, not files: each one once, by application and process ID.
func TestLogs(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		"shop-metrics.log.2026-01-02", "shop-metrics.log.2026-01-02.idx", "shop-metrics.log.2026-01-02.1",
		"shop-metrics.log.lck",
		"shop-metrics.json.2026-01-02", "shop-v2-metrics.log.pid9.2026-01-02", "shop-v2-metrics.log.pid10.2026-01-02",
		"a-metrics.log.2026-01-02", "shop-metrics.log.2026-13-02", "else",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for app, want := range map[string]string{
		"":     "[a shop shop-v2.pid9 shop-v2.pid10]",
		"shop": "[shop]", "shop.v2": "[shop-v2.pid9 shop-v2.pid10]", "b": "[]",
	} {
		logs, err := metriclog.Searcher{Dir: dir, App: app}.Logs()
		if got := fmt.Sprint(logs); err != nil || got != want {
			t.Errorf("%q: %s, want %s, %v", app, got, want, err)
		}
	}
	if _, err := (metriclog.Searcher{Dir: dir + "/no"}).Logs(); err == nil {
		t.Error("no error for a missing directory")
	}
}
