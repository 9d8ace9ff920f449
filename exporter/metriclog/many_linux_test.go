package metriclog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// A search has one open file for each log that it is reading: one at a time for processes that ran one after the other,
// and one for each of several concurrent processes.
func TestSearchOpenFiles(t *testing.T) {
	const logs = 100
	for name, c := range map[string]struct{ gap, maxOpen int }{
		"one after the other": {2, 2},
		"together":            {0, logs + 1},
	} {
		dir := t.TempDir()
		for i := range logs {
			var data, index []byte
			for s := range int64(2) {
				second := start.Unix() + int64(i*c.gap) + s
				for _, b := range []uint64{uint64(second), uint64(len(data))} {
					index = append(index, 0, 0, 0, 0, byte(b>>24), byte(b>>16), byte(b>>8), byte(b))
				}
				data = fmt.Appendf(data,
					"%d000|x|a|1|1|1|1|1|1|1|0\n%d000|x|__total_inbound_traffic__|1|1|1|1|1|1|1|0\n", second, second)
			}
			path := filepath.Join(dir, fmt.Sprintf("shop-metrics.log.pid%d.2026-01-02", i+1))
			for path, b := range map[string][]byte{path: data, path + ".idx": index} {
				if err := os.WriteFile(path, b, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		open := func() int {
			entries, err := os.ReadDir("/proc/self/fd")
			if err != nil {
				t.Fatal(err)
			}
			return len(entries)
		}
		before, most, n := open(), 0, 0
		rows, err := metriclog.Searcher{Dir: dir}.Search(metriclog.Query{})
		if err != nil {
			t.Fatal(err)
		}
		for range rows.All() {
			n++
			most = max(most, open()-before)
		}
		if err := rows.Err(); err != nil || n != 4*logs || most > c.maxOpen {
			t.Errorf("%s: %d rows, %d files open, %v; want %d and at most %d", name, n, most, err, 4*logs, c.maxOpen)
		}
		if left := open() - before; left > 0 { // negative if the garbage collector closed files of other tests
			t.Errorf("%s: %d files remain open", name, left)
		}
	}
}
