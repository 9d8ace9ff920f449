package exporter_test

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/windowstat/windowstat/"

// goPackage is a package as go list reports it.
type goPackage struct {
	ImportPath string
	Imports    []string
}

// packages returns the packages of the module, without its path.
func packages(t *testing.T) (list []goPackage) {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", module+"...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		p.ImportPath = strings.TrimPrefix(p.ImportPath, module)
		list = append(list, p)
	}
}

// layers are the layers of the architecture, lowest first.
var layers = []func(string) bool{
	func(p string) bool { return p == "leap" || strings.HasPrefix(p, "internal/") },
	func(p string) bool { return p == "node" },
	func(p string) bool { return p == "collector" },
	func(p string) bool { return strings.HasPrefix(p, "collector/") },
	func(p string) bool { return strings.HasPrefix(p, "exporter/internal/") },
	func(p string) bool { return strings.HasPrefix(p, "exporter/") },
	func(p string) bool { return p == "exporter" },
	func(p string) bool { return p == "dashboards" },
	func(p string) bool { return strings.HasPrefix(p, "cmd/windowstat/internal/") },
	func(p string) bool { return p == "cmd/windowstat" },
}

func layer(p string) int {
	return slices.IndexFunc(layers, func(is func(string) bool) bool { return is(p) })
}

// Only the main package and internal/flags import the command line library. Others describe flags with package flags.
func TestCommandLineLibraryStaysAtTheTop(t *testing.T) {
	users := 0
	for _, p := range packages(t) {
		for _, path := range p.Imports {
			if !strings.HasPrefix(path, "github.com/urfave/cli/") {
				continue
			}
			users++
			if path != "github.com/urfave/cli/v2" {
				t.Errorf("%s imports %s, not version 2", p.ImportPath, path)
			}
			if p.ImportPath != "cmd/windowstat" && p.ImportPath != "cmd/windowstat/internal/flags" {
				t.Errorf("%s imports %s", p.ImportPath, path)
			}
		}
	}
	if users != 2 {
		t.Errorf("%d packages import the library, want 2", users)
	}
}

// A package never imports a package of a higher layer. leap, node and collector import only the standard library.
func TestImportsOfLayers(t *testing.T) {
	for _, p := range packages(t) {
		if layer(p.ImportPath) < 0 {
			t.Errorf("%s has no layer", p.ImportPath)
		}
		for _, path := range p.Imports {
			own, ok := strings.CutPrefix(path, module)
			if ok && layer(own) > layer(p.ImportPath) {
				t.Errorf("%s imports %s", p.ImportPath, own)
			}
			first, _, _ := strings.Cut(path, "/")
			if !ok && layer(p.ImportPath) <= 2 && strings.Contains(first, ".") {
				t.Errorf("%s imports %s, but may import only the standard library", p.ImportPath, path)
			}
		}
	}
}

// Every public package has an example, including the packages of the separate modules.
func TestPackagesHaveExamples(t *testing.T) {
	dirs, err := filepath.Glob("../collector/*/go.mod")
	if err != nil || len(dirs) == 0 {
		t.Fatalf("%d modules: %v", len(dirs), err)
	}
	for i, path := range dirs {
		dirs[i] = filepath.Dir(path)
	}
	for _, p := range packages(t) {
		if !strings.Contains(p.ImportPath, "internal/") && !strings.HasPrefix(p.ImportPath, "cmd/") {
			dirs = append(dirs, filepath.Join("..", p.ImportPath))
		}
	}
	for _, dir := range dirs {
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(files, func(path string) bool {
			text, err := os.ReadFile(path)
			return err == nil && strings.Contains(string(text), "\nfunc Example")
		}) {
			t.Errorf("%s has no Example", dir)
		}
	}
}

// The page for maintainers lists each package exactly once, and names only existing files.
func TestArchitecturePage(t *testing.T) {
	b, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	_, rest, _ := strings.Cut(page, "<!-- packages -->")
	list, _, ok := strings.Cut(rest, "<!-- /packages -->")
	if !ok {
		t.Fatal("no list of packages")
	}
	var named []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)`").FindAllStringSubmatch(list, -1) {
		named = append(named, m[1])
	}
	var all []string
	for _, p := range packages(t) {
		all = append(all, p.ImportPath)
	}
	slices.Sort(named)
	slices.Sort(all)
	if !slices.Equal(named, all) {
		t.Errorf("the page lists %q, want %q", named, all)
	}
	for _, m := range regexp.MustCompile("`([a-z0-9]+/[a-z0-9/_]+(?:\\.go)?)`").FindAllStringSubmatch(page, -1) {
		if _, err := os.Stat("../" + m[1]); err != nil {
			t.Errorf("the page names %s: %v", m[1], err)
		}
	}
}
