package top

import (
	"testing"

	"github.com/windowstat/windowstat/exporter"
)

// Every metric that is asked for is one that there is, of the column that is shown.
func TestNamesOfMetrics(t *testing.T) {
	known := map[string]exporter.Metric{}
	for _, m := range exporter.Catalogue() {
		known[m.Name] = m
	}
	for m, column := range shown {
		for i, name := range onPage[m].list() {
			x, prefix := known[name], []string{"persecond_", "persecond_inbound_"}[i]
			if !x.Seconds || len(x.Labels) != 1-i || x.Name != prefix+column && x.Name != prefix+column+"_"+x.Unit {
				t.Errorf("%s is read from %q", column, name)
			}
		}
	}
	if known[overflow].Name == "" {
		t.Errorf("there is no %q", overflow)
	}
}
