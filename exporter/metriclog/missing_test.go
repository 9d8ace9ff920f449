package metriclog_test

import (
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

// After the clock leaps beyond the history, the seconds in between have records for some resources only: a call that
// hangs has a record in each, and other resources have lost theirs. Such a second has all its rows or none, so sums
// over the log stay consistent.
func TestSecondsWithMissingRecords(t *testing.T) {
	r := newRig(t, start, metriclog.Options{})
	r.Resource("hangs").Enter()
	r.calls("a", 1, ms)
	r.now = r.now.Add(15 * time.Minute)
	r.calls("a", 1, ms) // a keeps the last ten minutes of its history
	r.now = r.now.Add(time.Second)
	r.flush(t)
	rows := map[string]int{}
	for line := range strings.Lines(r.read(t, today)) {
		row, err := metriclog.Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		rows[row.Resource]++
	}
	metrics := r.metrics()
	if n := rows["hangs"]; n != rows[collector.InboundTotal] || n < 600 ||
		n+int(metrics["metriclog_lost_seconds_total"]) != 901 {
		t.Errorf("rows %v, %v", rows, metrics)
	}
	if n := r.checkIndexes(t); n != rows["hangs"]+rows["a"] {
		t.Errorf("%d indexed rows, rows by resource: %v", n, rows)
	}
}
