package metriclog

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// The metrics that the table says are logged are those that come back from a row as they were, and no others.
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
			t.Errorf("%s: %v came back as %v; logged is %v", metric.Name, want, got, metric.Logged)
		}
	}
}

// Numbers are written as encoding/json does.
func TestNumbersOfJSONLines(t *testing.T) {
	for _, v := range []float64{0, 1, 0.008, 1e-6, 9.99e-7, 1e-9, 3e-9, 123456.789, 292 * 365 * 86400, 1.0 / 3, math.Nextafter(1e-6, 0)} {
		want, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if got := appendFloat(nil, v); string(got) != string(want) {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
