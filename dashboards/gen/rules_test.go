package main

import (
	"io/fs"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/windowstat/windowstat/dashboards"
)

// TestRulesUseMetricsOfTheCatalogue parses the rules, which use metrics and what other rules record.
func TestRulesUseMetricsOfTheCatalogue(t *testing.T) {
	type rule struct {
		Record, Alert, Expr string
	}
	var all []rule
	known := selectable()
	for _, name := range []string{"recording.yaml", "alerts.yaml"} {
		text, err := fs.ReadFile(dashboards.FS(), "rules/"+name)
		if err != nil {
			t.Fatal(err)
		}
		var file struct {
			Groups []struct{ Rules []rule }
		}
		if err := yaml.Unmarshal(text, &file); err != nil {
			t.Fatal(err)
		}
		for _, g := range file.Groups {
			for _, r := range g.Rules {
				all = append(all, r)
				if r.Record != "" {
					known = append(known, r.Record)
				}
			}
		}
	}
	for _, r := range all {
		metrics(t, r.Record+r.Alert, r.Expr, known)
	}
	if len(all) < 15 {
		t.Errorf("%d rules", len(all))
	}
}
