package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

// smallRepository returns a repository with a nested module below collector. Its exported API is text.
func smallRepository(t *testing.T, text string) repository {
	t.Helper()
	r := repository{t.TempDir()}
	r.write(t, changelog, "# Changelog\n\n## Unreleased\n\n- The first.\n")
	r.write(t, "go.mod", "module "+root+"\n\ngo 1.25.0\n")
	r.write(t, "windowstat.go", "package windowstat\n"+text)
	r.write(t, "collector/x/go.mod", "module "+root+"/collector/x\n\ngo 1.25.0\n\nrequire "+
		root+" v0.0.0-00010101000000-000000000000\n\nreplace "+root+" => ../..\n")
	r.write(t, "collector/x/x.go", "package x\n\nimport _ \""+root+"\"\n")
	r.write(t, "collector/internal/y/go.mod", "module "+root+"/collector/internal/y\n\ngo 1.25.0\n\n"+
		"require (\n\t"+root+" v0.0.0-00010101000000-000000000000\n\t"+
		root+"/collector/x v0.0.0-00010101000000-000000000000\n)\n\n"+
		"replace (\n\t"+root+" => ../../..\n\t"+root+"/collector/x => ../../x\n)\n")
	r.write(t, "collector/internal/y/y_test.go", "package y\n\nimport _ \""+root+"/collector/x\"\n")
	// The tools are the tools of this tree.
	r.write(t, "tools/go.mod", string(must(os.ReadFile("../go.mod"))(t)))
	r.write(t, "tools/go.sum", string(must(os.ReadFile("../go.sum"))(t)))
	r.commit(t, "everything")
	return r
}

func (r repository) write(t *testing.T, file, text string) {
	t.Helper()
	path := r.path(file)
	if err := os.MkdirAll(path[:strings.LastIndexAny(path, `/\`)], 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

var (
	day   = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	green = func() error { return nil }
)

func TestReleaseTagsEveryModule(t *testing.T) {
	r := smallRepository(t, "func F() {}\n")
	if err := r.release("v0.1.0", day, green); err != nil {
		t.Fatal(err)
	}
	if tags := must(r.git("tag", "--points-at", "HEAD"))(t); tags != "collector/x/v0.1.0\nv0.1.0" {
		t.Errorf("tags %q", tags)
	}
	if mod := must(r.git("show", "collector/x/v0.1.0:collector/x/go.mod"))(t); !strings.Contains(mod, "require "+
		root+" v0.1.0\n") || !strings.Contains(mod, "=> ../..") {
		t.Errorf("the module is released as\n%s", mod)
	}
	// A module that is not released requires the same versions as the released modules that it requires.
	if out, err := output(r.path("collector", "internal", "y"), "go", "vet", "./..."); err != nil {
		t.Errorf("go vet of a module that requires a released one: %v\n%s", err, out)
	}
	if page := must(r.git("show", "HEAD:"+changelog))(t); page != "# Changelog\n\n## Unreleased\n\n"+
		"## v0.1.0 - 2026-01-02\n\n- The first." {
		t.Errorf("the changelog is\n%s", page)
	}
	if left := must(r.git("status", "--porcelain"))(t); left != "" {
		t.Errorf("the tree is left with %q", left)
	}
}

func TestReleaseIsRefused(t *testing.T) {
	for _, x := range []struct {
		name, version, want string
		before              func(t *testing.T, r repository)
	}{
		{name: "no version", version: "0.2.0", want: "is not a version"},
		{name: "another path", version: "v2.0.0", want: "needs another path"},
		{
			name: "changes", version: "v0.2.0", want: "not clean",
			before: func(t *testing.T, r repository) { r.write(t, "new.go", "package windowstat\n") },
		},
		{name: "again", version: "v0.1.0", want: "there is a tag collector/x/v0.1.0"},
		{name: "nothing to say", version: "v0.2.0", want: "says nothing", before: func(t *testing.T, r repository) {
			r.write(t, changelog, "# Changelog\n\n## Unreleased\n\n## v0.1.0 - 2026-01-02\n\n- The first.\n")
			r.commit(t, "an empty section")
		}},
		{
			name: "what users call is gone", version: "v0.1.1", want: "it is at least v0.2.0",
			before: func(t *testing.T, r repository) {
				r.write(t, "windowstat.go", "package windowstat\n")
				r.commit(t, "remove F")
			},
		},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := smallRepository(t, "func F() {}\n")
			if err := r.release("v0.1.0", day, green); err != nil {
				t.Fatal(err)
			}
			r.write(t, changelog,
				strings.Replace(must(r.readFile(changelog))(t), unreleased, unreleased+"\n- More.\n", 1))
			r.commit(t, "more")
			if x.before != nil {
				x.before(t, r)
			}
			head := must(r.git("rev-parse", "HEAD"))(t)
			err := r.release(x.version, day, func() error { t.Error("the tests ran"); return nil })
			if err == nil || !strings.Contains(err.Error(), x.want) {
				t.Errorf("release: %v, want %q", err, x.want)
			}
			if now := must(r.git("rev-parse", "HEAD"))(t); now != head {
				t.Error("something was committed")
			}
		})
	}
}

func (r repository) readFile(file string) (string, error) {
	b, err := os.ReadFile(r.path(file))
	return string(b), err
}

func TestNextVersion(t *testing.T) {
	for _, x := range []struct {
		last         string
		incompatible bool
		want         string
	}{
		{"v0.1.0", false, "v0.1.1"},
		{"v0.1.3", true, "v0.2.0"},
		{"v1.2.3", false, "v1.2.4"},
		{"v1.2.3", true, "v2.0.0"},
		{"v1.0.0-rc.1", true, "v1.0.0-rc.1"},
	} {
		if got := (change{x.last, x.incompatible}).next(); got != x.want {
			t.Errorf("after %s (incompatible: %v) comes %s, want %s", x.last, x.incompatible, got, x.want)
		}
	}
}
