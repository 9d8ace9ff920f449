package exporter_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fence matches the blocks of a page: the language and the text.
var fence = regexp.MustCompile("(?ms)^```([^`\n]*)\n(.*?)^```$")

// surroundings declares the variables that the Go blocks of the documentation use from the surrounding code.
const surroundings = `
	err      error
	rows     any
	q, id    string
	ctx      context.Context
	c        *collector.Collector
	x        *exporter.Exporter
	mux      *http.ServeMux
	listener net.Listener
	entry    collector.Entry
	registry *prometheus.Registry
	charge   func(context.Context) error
	run      func() error
	query    *collector.Resource
	work     func(context.Context, *collector.Resource)
	db       interface {
		Load(ctx context.Context, id string) error
		Query(ctx context.Context, q string) (any, error)
	}
`

// imported lists the packages that Go blocks use.
var imported = []string{
	"context", "errors", "fmt", "log", "net", "net/http", "os", "os/signal", "syscall", "time",
	"github.com/prometheus/client_golang/prometheus",
	module + "collector", module + "collector/httpstat", module + "exporter", module + "exporter/metriclog",
	module + "exporter/prom", module + "exporter/push", module + "exporter/sampler", module + "exporter/verify",
}

// documents returns the pages for users.
func documents(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../docs/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d pages: %v", len(files), err)
	}
	return append(files, "../README.md")
}

// The documentation contains no markers of merge conflicts.
func TestDocumentationHasNoMergeConflicts(t *testing.T) {
	for _, path := range append(documents(t), "../CHANGELOG.md", "../CONTRIBUTING.md",
		"../dashboards/README.md", "../deploy/README.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
		}
		for n, line := range strings.Split(string(text), "\n") {
			if strings.HasPrefix(line, "<<<<<<< ") || strings.HasPrefix(line, ">>>>>>> ") {
				t.Errorf("%s:%d: %s", path, n+1, line)
			}
		}
	}
}

// Tests read every block of the documentation: its language has a test, and every Go block compiles as statements, with
// the imports and the surroundings that are declared here.
func TestBlocksOfDocumentation(t *testing.T) {
	compile := newCompiler(t)
	n := 0
	for _, path := range documents(t) {
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Count(string(page), "\n```")%2 != 0 {
			t.Errorf("%s: a block has no end", path)
		}
		for _, m := range fence.FindAllStringSubmatch(string(page), -1) {
			switch language, text := m[1], m[2]; language {
			case "": // pictures and commands: the test of cmd/windowstat reads commands
			case "yaml", "promql", "nginx", "sh": // e2e tests read these
			case "go":
				n++
				if strings.Contains(text, "bridge.") {
					continue // e2e has the imported package and runs this block
				}
				if err := compile(text); err != nil {
					t.Errorf("%s: %v; if a variable of the surrounding code is missing, "+
						"declare it in exporter/docs_test.go:\n%s", path, err, text)
				}
			default:
				t.Errorf("%s: no test reads blocks in %q; add a case in exporter/docs_test.go:\n%s", path,
					language, text)
			}
		}
	}
	if n < 10 {
		t.Errorf("only %d Go blocks", n)
	}
}

// A longer README is not read to its end.
func TestLengthOfREADME(t *testing.T) {
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	lines, words := strings.Count(string(page), "\n"), len(strings.Fields(string(page)))
	if lines > 220 || words > 1800 {
		t.Errorf("README.md has %d lines and %d words, want at most 220 and 1,800: move text to docs", lines, words)
	}
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile("(?m)^#+ (.*)$")
	notSlug = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors returns the anchors of the headings of a page.
func anchors(page string) map[string]bool {
	all := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		title := link.ReplaceAllString(m[1], "]")
		all[strings.ReplaceAll(notSlug.ReplaceAllString(strings.ToLower(title), ""), " ", "-")] = true
	}
	return all
}

// Every link within the repository leads to an existing file and heading.
func TestLinksOfDocumentation(t *testing.T) {
	pages := append(documents(t), "../CHANGELOG.md", "../CONTRIBUTING.md", "../SECURITY.md", "../dashboards/README.md",
		"../dashboards/runbook.md", "../deploy/README.md")
	n := 0
	for _, path := range pages {
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(string(page), ""), -1) {
			within, whole := strings.CutPrefix(m[1], "https://github.com/windowstat/windowstat/blob/main/")
			if !whole && strings.Contains(m[1], "://") {
				continue
			}
			n++
			file, anchor, _ := strings.Cut(within, "#")
			to := path
			if file = strings.TrimSuffix(file, "?raw=true"); whole {
				to = filepath.Join("..", file)
			} else if file != "" {
				to = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s: broken link %s", path, m[1])
				continue
			}
			if anchor == "" || filepath.Ext(to) != ".md" {
				continue
			}
			if b, err := os.ReadFile(to); err != nil || !anchors(string(b))[anchor] {
				t.Errorf("%s: %s has no heading #%s (%v)", path, to, anchor, err)
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d links", n)
	}
}

// newCompiler returns a function that checks the types of statements. Variables may be unused.
func newCompiler(t *testing.T) (compile func(block string) error) {
	t.Helper()
	list := exec.Command("go", append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"},
		imported...)...)
	out, err := list.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		t.Fatalf("%v: %s", err, exit.Stderr)
	} else if err != nil {
		t.Fatal(err)
	}
	exported := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exported[path] = file
	}
	files := token.NewFileSet()
	open := func(path string) (io.ReadCloser, error) { return os.Open(exported[path]) }
	load := importer.ForCompiler(files, "gc", open)
	var imports strings.Builder
	for _, path := range imported {
		fmt.Fprintf(&imports, "import %q\n", path)
	}
	return func(block string) error {
		source := "package docs\n" + imports.String() + "var (" + surroundings + ")\n" +
			"func _() {\n//line block:1\n" + block + "}\n"
		if strings.HasPrefix(block, "package ") { // a complete file
			source = block
		}
		file, err := parser.ParseFile(files, "block.go", source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		var errs []error
		config := types.Config{Importer: load, Error: func(err error) {
			if x := (types.Error{}); !errors.As(err, &x) || !x.Soft { // unused variables are soft errors
				errs = append(errs, err)
			}
		}}
		_, _ = config.Check("docs", files, []*ast.File{file}, nil) // the errors are in errs
		return errors.Join(errs...)
	}
}
