package main

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/windowstat/windowstat/dashboards"
)

// TestRulesUseMetricsOfTheCatalogue parses the rules. They use only metrics of the catalogue and results of other
// rules.
func TestRulesUseMetricsOfTheCatalogue(t *testing.T) {
	type rule struct {
		Record, Alert, Expr string
	}
	var all []rule
	known := selectable(t)
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
		for _, m := range regexp.MustCompile(`# - record: (\S+)`).FindAllStringSubmatch(string(text), -1) {
			known = append(known, m[1]) // an example that users can enable
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

// TestRunbookNamesPanels finds every panel and dashboard named in the runbook.
func TestRunbookNamesPanels(t *testing.T) {
	text, err := fs.ReadFile(dashboards.FS(), "runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"Overview": true, "Resource": true, "windowstat itself": true}
	for _, d := range read(t) {
		for _, p := range panels(d) {
			known[p.Title] = true
		}
	}
	named := regexp.MustCompile(`\*([^*]+)\*`).FindAllStringSubmatch(strings.ReplaceAll(string(text), "\n", " "), -1)
	for _, m := range named {
		if !known[m[1]] {
			t.Errorf("no panel is called %q", m[1])
		}
	}
	if len(named) < 10 {
		t.Errorf("the runbook names %d panels", len(named))
	}
}
