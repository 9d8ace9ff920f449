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

// optionsIntro is the beginning of the page.
const optionsIntro = "# Options\n\nSet only the fields that you need. The zero value of a field is its default:\n\n" +
	"```go\n" + `x, err := exporter.New(exporter.Options{
	App:     "shop",
	Log:     metriclog.Options{Dir: "/var/log/shop", MaxAge: 7 * 24 * time.Hour},
	Seconds: prom.SecondsOptions{MaxSamples: 100_000},
})
` + "```\n\n" +
	"`exporter.New` and `Options.Check` return all invalid values in one error that names the fields. `New` fills\n" +
	"in the fields `Namespace`, `App`, `Log` and `Sampler` of the parts from `Options`; setting them in a part is\n" +
	"an error.\n\n" +
	"The flags of the commands set the same fields. Each flag can also be set by\n" +
	"[an environment variable](../deploy/README.md#flags-from-the-environment).\n\n" +
	"The tables below are the tree of `exporter.Options`. `go test ./exporter -update` writes this page from the\n" +
	"comments of the code.\n"

// The page of options has every field of exporter.Options, and of the structs in it, with its comment.
func TestPageOfOptions(t *testing.T) {
	var b strings.Builder
	b.WriteString(optionsIntro)
	writeOptions(t, &b, "Options", reflect.TypeFor[exporter.Options](), map[reflect.Type]bool{})
	if *update {
		if err := os.WriteFile(optionsPage, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(optionsPage); err != nil || string(got) != b.String() {
		t.Errorf("%s does not match the code; run go test ./exporter -update (%v)", optionsPage, err)
	}
}

// paths matches paths of options in a page, which start with exporter.Options or with the options of another package.
var paths = regexp.MustCompile("`(([a-z]+\\.)?[A-Za-z]*Options)((?:\\.[A-Z]\\w+)*)")

// Every option that a page mentions exists in the named struct. A path without a package starts at exporter.Options.
func TestOptionsOfDocumentation(t *testing.T) {
	n := 0
	others := []string{"../dashboards/README.md", "../dashboards/runbook.md", "../deploy/README.md"}
	for _, page := range append(documents(t), others...) {
		if page == optionsPage || page == apiPage {
			continue // generated from the structs
		}
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range paths.FindAllStringSubmatch(string(text), -1) {
			n++
			s := map[string]reflect.Type{
				"Options": reflect.TypeFor[exporter.Options](), "exporter.Options": reflect.TypeFor[exporter.Options](),
				"collector.Options":     reflect.TypeFor[collector.Options](),
				"httpstat.NamesOptions": reflect.TypeFor[httpstat.NamesOptions](),
				"prom.Options":          reflect.TypeFor[prom.Options](),
				"prom.ServeOptions":     reflect.TypeFor[prom.ServeOptions](),
				"push.Options":          reflect.TypeFor[push.Options](),
				"sampler.Options":       reflect.TypeFor[sampler.Options](),
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
					t.Errorf("%s: %s: unknown field %s", page, m[0], name)
					break
				}
				if s = optionsOf(f.Type); s == nil {
					break
				}
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d options", n)
	}
}

// writeOptions writes the table of a struct, then the tables of its fields that are option structs of this module.
func writeOptions(t *testing.T, b *strings.Builder, name string, s reflect.Type, seen map[reflect.Type]bool) {
	t.Helper()
	seen[s] = true
	comments := commentsOf(t, s)
	fmt.Fprintf(b, "\n## %s\n\n`%v`\n\n| field | type | description |\n|---|---|---|\n", name, s)
	var below []reflect.StructField
	for i := range s.NumField() {
		f := s.Field(i)
		if !f.IsExported() {
			continue
		}
		typ := strings.ReplaceAll(f.Type.String(), "interface {}", "any")
		fmt.Fprintf(b, "| `%s` | `%s` | %s |\n", f.Name, typ, comments[f.Name])
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

// optionsOf returns the option struct of this module that t is, or is a slice of. It returns nil for other types.
func optionsOf(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || !strings.HasPrefix(t.PkgPath(), module) ||
		!strings.HasSuffix(t.Name(), "Options") {
		return nil
	}
	return t
}

// commentsOf returns the comments of a struct's fields by name.
func commentsOf(t *testing.T, s reflect.Type) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", strings.TrimPrefix(s.PkgPath(), module), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	comments, first := map[string]string{}, ""
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
				if text != "" {
					comments[field.Names[0].Name], first = defaults(text), field.Names[0].Name
				}
				for _, name := range field.Names { // the other fields that share the comment refer to the first one
					if name.Name != first {
						comments[name.Name] = "see `" + first + "`"
					}
				}
			}
			return false
		})
	}
	return comments
}

// defaultsOf returns a function that replaces the names of a package's constants, such as DefaultDrain, by their
// values.
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
