package exporter_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/windowstat/windowstat/exporter"
)

var update = flag.Bool("update", false, "write the metric table of the README instead of comparing it")

const (
	tableBegin = "<!-- metrics: go test ./exporter -update -->\n"
	tableEnd   = "<!-- /metrics -->\n"
)

// table is the catalogue as the README has it.
func table() string {
	var b strings.Builder
	b.WriteString("| name | type | labels | what it is |\n|---|---|---|---|\n")
	for _, m := range exporter.Catalogue() {
		fmt.Fprintf(&b, "| `%s_%s` | %s | %s | %s |\n", exporter.Namespace, m.Name, m.Type, strings.Join(m.Labels, ", "), m.Help)
	}
	return b.String()
}

func TestREADMEHasTheCatalogue(t *testing.T) {
	const path = "../README.md"
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(b), tableBegin)
	got, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no %q and %q", path, tableBegin, tableEnd)
	}
	if *update {
		if err := os.WriteFile(path, []byte(before+tableBegin+table()+tableEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != table() {
		t.Errorf("the metric table of %s is not the catalogue; run go test ./exporter -update", path)
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
		if m.Resource != nil && m.Self != nil {
			t.Errorf("%s has two origins", m.Name)
		}
	}
}
