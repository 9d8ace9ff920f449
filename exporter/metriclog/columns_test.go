package metriclog

import (
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// A metric survives a round trip through a row exactly if the table marks it as logged.
func TestLoggedMetricsSurviveTheLog(t *testing.T) {
	var m node.MetricNode
	for i, c := range node.Columns() {
		*c.At(&m) = int64(1_000_003*i + 7)
	}
	m.Start = time.Unix(1_767_323_045, 0).UTC()
	row, err := Parse(string(appendLine(nil, appendHead(nil, m.Start), "a", &m)))
	if err != nil {
		t.Fatal(err)
	}
	back := row.Record()
	for _, metric := range table.Seconds() {
		if metric.Value == nil {
			continue
		}
		want, _ := metric.Value(&m)
		got, _ := metric.Value(&back)
		if (got == want) != metric.Logged {
			t.Errorf("%s: %v was read back as %v; the table has Logged %v", metric.Name, want, got, metric.Logged)
		}
	}
}
