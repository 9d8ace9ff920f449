package exporter_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// exported returns the exported names of a directory: functions, types, values, and Type.Method or Type.Field.
func exported(t *testing.T, dir string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					name = typeOf(d.Recv.List[0].Type) + "." + name
				}
				names[name] = true
			case *ast.GenDecl:
				for _, s := range d.Specs {
					addSpec(names, s)
				}
			}
		}
	}
	return names
}

// typeOf returns the receiver type of a method.
func typeOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeOf(e.X)
	case *ast.IndexExpr:
		return typeOf(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// addSpec adds the names of a declaration, including the fields of structs.
func addSpec(names map[string]bool, s ast.Spec) {
	switch s := s.(type) {
	case *ast.ValueSpec:
		for _, n := range s.Names {
			names[n.Name] = true
		}
	case *ast.TypeSpec:
		names[s.Name.Name] = true
		var fields *ast.FieldList
		switch x := s.Type.(type) {
		case *ast.StructType:
			fields = x.Fields
		case *ast.InterfaceType:
			fields = x.Methods
		default:
			return
		}
		for _, f := range fields.List {
			for _, n := range f.Names {
				names[s.Name.Name+"."+n.Name] = true
			}
			if len(f.Names) == 0 {
				names[s.Name.Name+".*"] = true // the names of embedded types are unknown here
			}
		}
	}
}

var (
	span      = regexp.MustCompile("`[^`\n]+`")
	qualified = regexp.MustCompile(`(?:^|[^.\w/])([a-z]\w*)\.([A-Z]\w*)(?:\.([A-Z]\w*))?`)
	member    = regexp.MustCompile(`(?:^|[^.\w])([A-Z]\w*)\.([A-Z]\w*)`)
)

// All Go names in the documentation exist: functions and types of packages, methods and fields of types.
func TestIdentifiersOfDocumentation(t *testing.T) {
	of, all := map[string]map[string]bool{}, map[string]bool{}
	for _, pattern := range []string{
		"../leap", "../node", "../collector", "../collector/*", "../exporter",
		"../exporter/*", "../dashboards",
	} {
		dirs, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range dirs {
			if info, err := os.Stat(dir); err != nil || !info.IsDir() {
				continue
			}
			names := exported(t, dir)
			of[filepath.Base(dir)] = names
			for n := range names {
				all[n] = true
			}
		}
	}
	n := 0
	for _, path := range append(documents(t), "../dashboards/README.md", "../dashboards/runbook.md",
		"../CONTRIBUTING.md") {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, code := range span.FindAllString(fence.ReplaceAllString(string(text), ""), -1) {
			code = strings.Trim(code, "`")
			for _, m := range qualified.FindAllStringSubmatch(code, -1) {
				if names := of[m[1]]; names != nil {
					n++
					if m[3] != "" && !names[m[2]+".*"] && !names[m[2]+"."+m[3]] || !names[m[2]] {
						t.Errorf("%s: unknown name %s", path, strings.TrimSpace(m[0]))
					}
				}
			}
			for _, m := range member.FindAllStringSubmatch(code, -1) {
				if all[m[1]] && m[1] != "Options" { // TestOptionsOfDocumentation checks these
					n++
					if !all[m[1]+"."+m[2]] && !all[m[1]+".*"] {
						t.Errorf("%s: %s has no %s", path, m[1], m[2])
					}
				}
			}
		}
	}
	if n < 60 {
		t.Errorf("only %d names", n)
	}
}

// located matches a method and its file on a page.
var located = regexp.MustCompile("`(?:[a-z]+\\.)?([A-Z]\\w*)\\.([A-Z]\\w*)`\\s+\\(`([\\w/]+\\.go)`")

// The files that the page for maintainers gives for methods contain these methods.
func TestMethodsAreInTheirFiles(t *testing.T) {
	page, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	found := located.FindAllStringSubmatch(string(page), -1)
	for _, m := range found {
		text, err := os.ReadFile(filepath.Join("..", m[3]))
		if err != nil || !regexp.MustCompile(`(?m)^func \(\w+ \*?`+m[1]+`\) `+m[2]+`\(`).Match(text) {
			t.Errorf("%s.%s is not in %s (%v)", m[1], m[2], m[3], err)
		}
	}
	if len(found) < 3 {
		t.Errorf("only %d methods", len(found))
	}
}

// packageName matches the name of a package in the documentation of a package.
var packageName = regexp.MustCompile(`\b([Tt]his )?[Pp]ackage ([a-z]\w*)`)

// All packages that the documentation of packages mentions exist.
func TestPackagesOfDocumentation(t *testing.T) {
	known := map[string]bool{"that": true, "is": true} // words that may follow "package"
	var docs []string
	for _, pattern := range []string{"..", "../[a-z]*", "../[a-z]*/*"} {
		dirs, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range dirs {
			known[filepath.Base(dir)] = true
			files, err := filepath.Glob(filepath.Join(dir, "*.go"))
			if err != nil {
				t.Fatal(err)
			}
			docs = append(docs, files...)
		}
	}
	n := 0
	for _, path := range docs {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		if file.Doc == nil {
			continue
		}
		for _, m := range packageName.FindAllStringSubmatch(file.Doc.Text(), -1) {
			if n++; m[1] == "" && !known[m[2]] {
				t.Errorf("%s: unknown %s", path, m[0])
			}
		}
	}
	if n < 30 {
		t.Errorf("only %d packages", n)
	}
}
