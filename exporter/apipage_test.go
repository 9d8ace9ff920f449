package exporter_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// apiPackages are the packages that programs import, in the order of the page.
var apiPackages = []string{
	"collector", "collector/httpstat", "collector/grpcstat", "collector/ginstat", "collector/echostat",
	"collector/echov5stat", "collector/chistat", "collector/otelstat", "collector/sentinelstat", "collector/limitfile",
	"exporter", "exporter/prom", "exporter/push", "exporter/metriclog", "exporter/verify", "exporter/live",
	"exporter/sampler", "exporter/sentinellog", "exporter/vm", "dashboards", "node", "leap",
}

const apiPage = "../docs/api.md"

// docs/api.md lists every exported type and function of every package that programs import, with the first sentence of
// its comment.
func TestPageOfAPI(t *testing.T) {
	var b bytes.Buffer
	for _, path := range apiPackages {
		p := parsePackage(t, filepath.Join("..", path))
		fmt.Fprintf(&b, "\n## %s\n\n%s\n\n| exported | purpose |\n|---|---|\n", path, cellText(p.Synopsis(p.Doc)))
		row := func(name, comment string) { fmt.Fprintf(&b, "| `%s` | %s |\n", name, cellText(p.Synopsis(comment))) }
		for _, f := range p.Funcs {
			row(f.Name, f.Doc)
		}
		for _, typ := range p.Types {
			row(typ.Name, typ.Doc)
			for _, f := range typ.Funcs {
				row(f.Name, f.Doc)
			}
			var methods []string
			for _, m := range typ.Methods {
				methods = append(methods, m.Name)
			}
			if len(methods) > 0 {
				fmt.Fprintf(&b, "| methods of `%s` | `%s` |\n", typ.Name, strings.Join(methods, "`, `"))
			}
		}
	}
	compareOrUpdate(t, apiPage, b.String())

	// Every other package is internal, a command, or for the project itself.
	for _, p := range packages(t) {
		internal := strings.Contains(p.ImportPath+"/", "/internal/") || strings.HasPrefix(p.ImportPath, "internal/")
		if !internal && !strings.HasPrefix(p.ImportPath, "cmd/") && !slices.Contains(apiPackages, p.ImportPath) {
			t.Errorf("docs/api.md lacks %s", p.ImportPath)
		}
	}
}

// parsePackage returns the documentation of the package in a directory.
func parsePackage(t *testing.T, dir string) *doc.Package {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, path, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	p, err := doc.NewFromFiles(fset, files, module+filepath.ToSlash(strings.TrimPrefix(dir, "../")))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// cellText returns text for a cell of a table, without links of Go comments.
func cellText(s string) string {
	return strings.NewReplacer("|", `\|`, "[", "", "]", "").Replace(s)
}

// compareOrUpdate compares the part of a page after its first marker with want, or writes it.
func compareOrUpdate(t *testing.T, path, want string) {
	t.Helper()
	const marker = "<!-- generated -->\n"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, got, found := strings.Cut(string(page), marker)
	switch {
	case !found:
		t.Fatalf("%s has no line %q", path, marker)
	case got == want:
	case *update:
		if err := os.WriteFile(path, []byte(head+marker+want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s differs from the comments; go test ./exporter -update writes it", path)
	}
}
