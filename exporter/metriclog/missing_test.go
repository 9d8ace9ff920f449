package metriclog_test

import (
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

// A clock that leaps beyond the history leaves seconds of which some resources know what happened and others do not: a call that
// hangs is known to have hung in each. Such a second has all its rows, or none, so that what is in the log adds up.
func TestSecondsWithMissingRecords(t *testing.T) {
	r := newRig(t, start, metriclog.Options{})
	r.Resource("hangs").Enter()
	r.calls("a", 1, ms)
	r.now = r.now.Add(15 * time.Minute)
	r.calls("a", 1, ms) // keeps its last ten minutes
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
		t.Errorf("%d indexed rows beside %v", n, rows)
	}
}
