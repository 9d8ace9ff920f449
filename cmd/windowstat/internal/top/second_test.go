package top

import (
	"strings"
	"testing"

	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/node"
)

// Each requested metric exists, and belongs to its column.
func TestNamesOfMetrics(t *testing.T) {
	known := map[string]exporter.Metric{}
	for _, m := range exporter.Catalogue() {
		known[m.Name] = m
	}
	for m, name := range onPage {
		for prefix, labels := range map[string]int{"persecond_": 1, "persecond_inbound_": 0} {
			if x := known[prefix+name]; !x.Seconds || x.Type != "gauge" || len(x.Labels) != labels {
				t.Errorf("there is no %s%s", prefix, name)
			}
		}
		for _, c := range node.Columns() {
			var v, other values
			v[m], other[m] = 1, 1
			v.add(other)
			if adds := c.Kind != node.Peak && c.None == nil; c.Name == strings.TrimSuffix(name, "_seconds") &&
				adds != (v[m] == 2) {
				t.Errorf("%s adds up to %v", name, v[m])
			}
		}
	}
	if !known["persecond_run"].Seconds {
		t.Error("there is no persecond_run")
	}
}
