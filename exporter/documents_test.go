package exporter_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/windowstat/windowstat/exporter"
)

var update = flag.Bool("update", false, "write the tables and the programs of the documents instead of comparing them")

// part is a generated part of a document, between the lines begin and end.
type part struct{ begin, end, text string }

// tables returns the tables of docs/metrics.md: the metrics of /metrics, and the metrics of single seconds.
func tables(t *testing.T) []part {
	t.Helper()
	var metrics, seconds strings.Builder
	metrics.WriteString("| name | type | labels | description |\n|---|---|---|---|\n")
	seconds.WriteString("| name | in the log | description |\n|---|---|---|\n")
	for _, m := range described(t) {
		name := exporter.Namespace + "_" + m.Name
		if !m.Seconds {
			fmt.Fprintf(&metrics, "| `%s` | %s | %s | %s |\n", name, m.Type, strings.Join(m.Labels, ", "), m.Help)
			continue
		}
		logged := ""
		if m.Logged {
			logged = "yes"
		}
		fmt.Fprintf(&seconds, "| `%s` | %s | %s |\n", name, logged, m.Help)
	}
	return []part{
		{"<!-- metrics: go test ./exporter -update -->\n", "<!-- /metrics -->\n", metrics.String()},
		{"<!-- seconds: go test ./exporter -update -->\n", "<!-- /seconds -->\n", seconds.String()},
	}
}

// sentinelTable returns the table of docs/sentinel.md.
func sentinelTable() part {
	var text strings.Builder
	text.WriteString("| name | description |\n|---|---|\n")
	for _, m := range exporter.SentinelCatalogue() {
		fmt.Fprintf(&text, "| `%s_%s` | %s |\n", exporter.Namespace, m.Name, m.Help)
	}
	return part{"<!-- sentinel: go test ./exporter -update -->\n", "<!-- /sentinel -->\n", text.String()}
}

// programs returns the programs of docs/programs.md: the lines between "// begin NAME" and "// end NAME" in the
// examples.
func programs(t *testing.T) (parts []part) {
	t.Helper()
	files, err := filepath.Glob("example_*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for rest := string(b); ; {
			_, after, ok := strings.Cut(rest, "\t// begin ")
			if !ok {
				break
			}
			name, after, _ := strings.Cut(after, "\n")
			text, after, ok := strings.Cut(after, "\t// end "+name+"\n")
			if !ok {
				t.Fatalf("%s: no end of %s", path, name)
			}
			text = strings.TrimPrefix(strings.ReplaceAll("\n"+text, "\n\t", "\n"), "\n")
			// Replace the names that depend on the machine that runs the examples.
			text = strings.NewReplacer("Addr: addr", `Addr: ":8080"`, "ctx, pages)", `ctx, ":9719")`,
				"limits,", `"limits.yml",`, "Dir: dir", `Dir: "/var/log/shop"`,
				"URL: url", `URL: "http://prometheus:9090/api/v1/write"`).Replace(text)
			parts = append(parts, part{
				"<!-- program " + name + ": go test ./exporter -update -->\n", "<!-- /program -->\n",
				"```go\n" + text + "```\n",
			})
			rest = after
		}
	}
	return parts
}

// The generated parts of the documents match the code.
func TestGeneratedDocuments(t *testing.T) {
	written := programs(t)
	if len(written) != 5 {
		t.Errorf("%d programs, want five", len(written))
	}
	compareParts(t, "../docs/programs.md", written)
	compareParts(t, "../docs/metrics.md", tables(t))
	compareParts(t, "../docs/sentinel.md", []part{sentinelTable()})
}

// compareParts compares the generated parts of a document with the code, or writes them with -update.
func compareParts(t *testing.T, path string, parts []part) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	for _, x := range parts {
		before, rest, ok1 := strings.Cut(page, x.begin)
		got, after, ok2 := strings.Cut(rest, x.end)
		if !ok1 || !ok2 {
			t.Fatalf("%s has no %q and %q", path, x.begin, x.end)
		}
		if got != x.text && !*update {
			t.Errorf("%s does not match the code at %q; run go test ./exporter -update", path, x.begin)
		}
		page = before + x.begin + x.text + x.end + after
	}
	if *update {
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
