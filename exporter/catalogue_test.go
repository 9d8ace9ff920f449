package exporter_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/windowstat/windowstat/exporter"
)

var update = flag.Bool("update", false, "write the metric tables of the README instead of comparing them")

// table is a table of the README, from the line begin to the line end.
type table struct{ begin, end, rows string }

// tables are those of the README: of the metrics, and of the metrics of single seconds.
func tables() []table {
	var metrics, seconds strings.Builder
	metrics.WriteString("| name | type | labels | what it is |\n|---|---|---|---|\n")
	for _, m := range exporter.Catalogue() {
		fmt.Fprintf(&metrics, "| `%s_%s` | %s | %s | %s |\n", exporter.Namespace, m.Name, m.Type, strings.Join(m.Labels, ", "), m.Help)
	}
	seconds.WriteString("| name | in the log | what it is |\n|---|---|---|\n")
	for _, m := range exporter.Seconds() {
		logged := ""
		if m.Logged {
			logged = "yes"
		}
		fmt.Fprintf(&seconds, "| `%s_%s` | %s | %s |\n", exporter.Namespace, m.Name, logged, m.Help)
	}
	return []table{
		{"<!-- metrics: go test ./exporter -update -->\n", "<!-- /metrics -->\n", metrics.String()},
		{"<!-- seconds: go test ./exporter -update -->\n", "<!-- /seconds -->\n", seconds.String()},
	}
}

func TestREADMEHasTheCatalogue(t *testing.T) {
	const path = "../README.md"
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	for _, x := range tables() {
		before, rest, ok1 := strings.Cut(page, x.begin)
		got, after, ok2 := strings.Cut(rest, x.end)
		if !ok1 || !ok2 {
			t.Fatalf("%s has no %q and %q", path, x.begin, x.end)
		}
		if got != x.rows && !*update {
			t.Errorf("a table of %s is not the catalogue; run go test ./exporter -update", path)
		}
		page = before + x.begin + x.rows + x.end + after
	}
	if *update {
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCatalogueIsConsistent(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range exporter.Catalogue() {
		if seen[m.Name] {
			t.Errorf("%s is there twice", m.Name)
		}
		seen[m.Name] = true
		if counter := strings.HasSuffix(m.Name, "_total"); counter != (m.Type == exporter.Counter) {
			t.Errorf("%s is a %s", m.Name, m.Type)
		}
		if m.Unit != "" && !strings.HasSuffix(strings.TrimSuffix(m.Name, "_total"), "_"+m.Unit) {
			t.Errorf("%s does not end with its unit %s", m.Name, m.Unit)
		}
		if !strings.HasSuffix(m.Help, ".") || strings.ContainsAny(m.Help, "|\n") {
			t.Errorf("%s: help %q", m.Name, m.Help)
		}
		origins := 0
		for _, is := range []bool{m.Resource != nil, m.Some != nil, m.Words != nil, m.Self != nil} {
			if is {
				origins++
			}
		}
		if origins > 1 {
			t.Errorf("%s has %d origins", m.Name, origins)
		}
	}
}
