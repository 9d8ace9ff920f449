package exporter_test

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/exporter/push"
	"github.com/windowstat/windowstat/exporter/sampler"
)

const optionsPage = "../docs/options.md"

// The page of options has every field of exporter.Options, and of the structs in it, with what its comment says.
func TestPageOfOptions(t *testing.T) {
	var b strings.Builder
	b.WriteString("# Options\n\nThe tree of `exporter.Options`, written from the code's comments by `go test ./exporter -update`. " +
		"The zero value of each\nfield is its default. `Options.Check` returns everything that is wrong with the values, all at once; " +
		"the flags of the\ncommands set the same fields, " +
		"and each can be [a variable of the environment](../deploy/README.md#flags-from-the-environment).\n")
	writeOptions(t, &b, "Options", reflect.TypeFor[exporter.Options](), map[reflect.Type]bool{})
	if *update {
		if err := os.WriteFile(optionsPage, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(optionsPage); err != nil || string(got) != b.String() {
		t.Errorf("%s is not as the code; run go test ./exporter -update (%v)", optionsPage, err)
	}
}

// paths finds the paths of options in a page: of exporter.Options, or of the options of a package.
var paths = regexp.MustCompile("`(([a-z]+\\.)?[A-Za-z]*Options)((?:\\.[A-Z]\\w+)*)")

// An option that a page names is there, in the struct that the page says. What has no package is of exporter.Options.
func TestOptionsOfDocumentation(t *testing.T) {
	n := 0
	for _, page := range append(documents(t), "../dashboards/README.md", "../dashboards/runbook.md", "../deploy/README.md") {
		if page == optionsPage {
			continue // is written from the structs
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range paths.FindAllStringSubmatch(string(text), -1) {
			n++
			s := map[string]reflect.Type{
				"Options": reflect.TypeFor[exporter.Options](), "exporter.Options": reflect.TypeFor[exporter.Options](),
				"collector.Options": reflect.TypeFor[collector.Options](), "httpstat.NamesOptions": reflect.TypeFor[httpstat.NamesOptions](),
				"prom.Options": reflect.TypeFor[prom.Options](), "prom.ServeOptions": reflect.TypeFor[prom.ServeOptions](),
				"push.Options": reflect.TypeFor[push.Options](), "sampler.Options": reflect.TypeFor[sampler.Options](),
			}[m[1]]
			if s == nil {
				t.Errorf("%s: %s: which struct is that?", page, m[0])
				continue
			}
			for name := range strings.SplitSeq(strings.TrimPrefix(m[3], "."), ".") {
				if name == "" {
					break // only the struct
				}
				if _, is := s.MethodByName(name); is {
					break
				}
				f, is := s.FieldByName(name)
				if !is {
					t.Errorf("%s: %s: there is no %s", page, m[0], name)
					break
				}
				if s = optionsOf(f.Type); s == nil {
					break
				}
			}
		}
	}
	if n < 20 {
		t.Errorf("there are only %d options", n)
	}
}

// writeOptions writes a table of a struct, and those of its fields that are structs of this module.
func writeOptions(t *testing.T, b *strings.Builder, name string, s reflect.Type, seen map[reflect.Type]bool) {
	t.Helper()
	seen[s] = true
	comments := commentsOf(t, s)
	fmt.Fprintf(b, "\n## %s\n\n`%v`\n\n| field | type | what it is |\n|---|---|---|\n", name, s)
	var below []reflect.StructField
	for i := range s.NumField() {
		f := s.Field(i)
		if !f.IsExported() {
			continue
		}
		fmt.Fprintf(b, "| `%s` | `%s` | %s |\n", f.Name, strings.ReplaceAll(f.Type.String(), "interface {}", "any"), comments[f.Name])
		if e := optionsOf(f.Type); e != nil && !seen[e] {
			below = append(below, f)
		}
	}
	for _, f := range below {
		inner := name + "." + f.Name
		if f.Type.Kind() == reflect.Slice {
			inner += "[i]"
		}
		writeOptions(t, b, inner, optionsOf(f.Type), seen)
	}
}

// optionsOf is the struct of this module that a field has, itself or several of it; nil if it has none.
func optionsOf(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || !strings.HasPrefix(t.PkgPath(), module) || !strings.HasSuffix(t.Name(), "Options") {
		return nil
	}
	return t
}

// commentsOf are the comments of a struct's fields.
func commentsOf(t *testing.T, s reflect.Type) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", strings.TrimPrefix(s.PkgPath(), module), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	comments, before := map[string]string{}, ""
	defaults := defaultsOf(t, files)
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || spec.Name.Name != s.Name() {
				return true
			}
			for _, field := range spec.Type.(*ast.StructType).Fields.List {
				text := field.Doc.Text() + field.Comment.Text()
				text = strings.NewReplacer("[", "", "]", "", "|", `\|`).Replace(strings.Join(strings.Fields(text), " "))
				if text == "" {
					text = before // one comment for several
				}
				before = text
				for _, name := range field.Names {
					comments[name.Name] = defaults(text)
				}
			}
			return false
		})
	}
	return comments
}

// defaultsOf returns a function that puts the values of a package's constants, such as DefaultDrain, in the place of their names.
func defaultsOf(t *testing.T, files []string) func(string) string {
	t.Helper()
	values := map[string]string{}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range defaultValue.FindAllStringSubmatch(string(text), -1) {
			values[m[1]] = "`" + m[2] + "`"
		}
	}
	return func(text string) string {
		return defaultName.ReplaceAllStringFunc(text, func(name string) string { return cmp.Or(values[name], name) })
	}
}

var (
	defaultName  = regexp.MustCompile(`\bDefault\w+`)
	defaultValue = regexp.MustCompile(`(?m)^\s*(?:const )?(Default\w+)\s+= ([^/\n]*[^/\s])`)
)
