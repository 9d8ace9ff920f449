package metriclog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

func TestLogs(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{
		"shop-metrics.log.2026-01-02", "shop-metrics.log.2026-01-02.idx", "shop-metrics.log.2026-01-02.1", "shop-metrics.log.lck",
		"shop-metrics.json.2026-01-02", "shop-v2-metrics.log.pid9.2026-01-02", "shop-v2-metrics.log.pid10.2026-01-02",
		"a-metrics.log.2026-01-02", "shop-metrics.log.2026-13-02", "else",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for app, want := range map[string]string{
		"": "[a shop shop-v2.pid9 shop-v2.pid10]", "shop": "[shop]", "shop.v2": "[shop-v2.pid9 shop-v2.pid10]", "b": "[]",
	} {
		logs, err := metriclog.Searcher{Dir: dir, App: app}.Logs()
		if got := fmt.Sprint(logs); err != nil || got != want {
			t.Errorf("%q: %s, want %s, %v", app, got, want, err)
		}
	}
	if _, err := (metriclog.Searcher{Dir: dir + "/no"}).Logs(); err == nil {
		t.Error("a directory that is not there")
	}
}

// A row that was read is written as it was.
func TestAppendLine(t *testing.T) {
	for _, line := range []string{
		"1767323045000|2026-01-02 03:04:05|checkout|100|7|99|10|5|3|1|0\n",
		`1767323045000|2026-01-02 03:04:05|a\x7cb\\x\x1b|0|0|0|0|9223372036854|0|-1|0` + "\n",
	} {
		row, err := metriclog.Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(row.AppendLine([]byte("x"), time.UTC)); got != "x"+line {
			t.Errorf("got %swant %s", got, line)
		}
		if got := string(row.AppendLine(nil, time.FixedZone("", 3600))); !strings.Contains(got, "|2026-01-02 04:04:05|") {
			t.Errorf("in another zone: %s", got)
		}
	}
}
