package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// TestStrangersGetEveryModule makes a release of this tree. Each module can be added alone to an empty module, and its
// examples pass. The command can be installed, and the binaries of the release are reproducible.
func TestStrangersGetEveryModule(t *testing.T) {
	if testing.Short() {
		t.Skip("builds every module twice")
	}
	r := copyOfTree(t)
	const version = "v0.1.0"
	if err := r.release(version, time.Now(), func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	for _, dir := range must(r.nested())(t) {
		// The released modules are consistent with the tree, so they can be developed in it.
		must(output(r.path(dir), "go", "mod", "tidy", "-diff"))(t)
	}
	proxy := t.TempDir()
	r.publish(t, version, proxy)
	s := newStranger(t, proxy)
	for dir, path := range r.modules(t) {
		t.Run(path, func(t *testing.T) { s.get(t, r, dir, path+"@"+version) })
	}
	t.Run("first minute", func(t *testing.T) { s.firstMinute(t, r) })
	t.Run("install", func(t *testing.T) { s.install(t, version) })
	t.Run("completion", func(t *testing.T) { s.completes(t) })
	t.Run("dist", func(t *testing.T) { r.distributes(t, version) })
}

// copyOfTree returns a new repository with the files of the work tree, including uncommitted changes, and without
// releases.
func copyOfTree(t *testing.T) repository {
	t.Helper()
	here, r := repository{"../.."}, repository{t.TempDir()}
	files := must(here.git("ls-files", "-z", "--cached", "--others", "--exclude-standard"))(t)
	for file := range strings.SplitSeq(strings.TrimSuffix(files, "\x00"), "\x00") {
		text, err := os.ReadFile(here.path(file))
		if os.IsNotExist(err) {
			continue // deleted in the work tree
		}
		info := must(os.Stat(here.path(file)))(t)
		if err := os.MkdirAll(filepath.Dir(r.path(file)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(r.path(file), text, info.Mode()); err != nil {
			t.Fatal(err)
		}
	}
	page := must(os.ReadFile(r.path(changelog)))(t) // after a release it may have nothing to say yet
	page = bytes.Replace(page, []byte(unreleased), []byte(unreleased+"\n- A change.\n"), 1)
	if err := os.WriteFile(r.path(changelog), page, 0o644); err != nil {
		t.Fatal(err)
	}
	r.commit(t, "everything")
	return r
}

func (r repository) commit(t *testing.T, message string) {
	t.Helper()
	t.Setenv("GIT_AUTHOR_NAME", "nobody")
	t.Setenv("GIT_AUTHOR_EMAIL", "nobody@example.com")
	t.Setenv("GIT_COMMITTER_NAME", "nobody")
	t.Setenv("GIT_COMMITTER_EMAIL", "nobody@example.com")
	must(r.git("init", "--quiet"))(t)
	must(r.git("add", "--all"))(t)
	must(r.git("commit", "--quiet", "--message", message))(t)
}

// A stranger has Go, its own module cache, and a proxy with the release. Modules outside the release come from the
// module cache of this machine, or, if they are not in it, from the module source of this machine.
type stranger struct {
	env []string
	bin string
}

func newStranger(t *testing.T, proxy string) stranger {
	t.Helper()
	cache := must(output(".", "go", "env", "GOMODCACHE"))(t)
	others := must(output(".", "go", "env", "GOPROXY"))(t)
	url := func(dir string) string { return "file://" + filepath.ToSlash(dir) }
	bin := t.TempDir()
	return stranger{bin: bin, env: append(os.Environ(),
		"GOPROXY="+url(proxy)+","+url(filepath.Join(cache, "cache", "download"))+","+others,
		"GOSUMDB=off",                            // nobody knows the sums of this release yet
		"GOMODCACHE="+t.TempDir(),                // the version exists in this test only
		"GOFLAGS=-mod=mod -modcacherw -trimpath", // builds are cached, though the module cache is new
		"GOWORK=off", "GOENV=off", "GOBIN="+bin,
	)}
}

func (s stranger) run(t *testing.T, dir string, command ...string) string {
	t.Helper()
	c := exec.Command(command[0], command[1:]...)
	c.Dir, c.Env = dir, s.env
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", command, err, out)
	}
	return string(out)
}

// get requires one module and nothing else, and runs its examples, which import the module.
func (s stranger) get(t *testing.T, r repository, dir, module string) {
	t.Helper()
	pattern := r.path(dir, "example*_test.go")
	if dir == "." {
		pattern = r.path("exporter", "example*_test.go") // the programs of docs/programs.md
	}
	examples, _ := filepath.Glob(pattern)
	if len(examples) == 0 {
		t.Fatalf("there is no %s, which shows how the module is used", pattern)
	}
	consumer := t.TempDir()
	for _, file := range examples {
		text := must(os.ReadFile(file))(t)
		if err := os.WriteFile(filepath.Join(consumer, filepath.Base(file)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.run(t, consumer, "go", "mod", "init", "example.com/consumer")
	s.run(t, consumer, "go", "get", module)
	out := s.run(t, consumer, "go", "test", "-vet=off", "-v", "-count=1", ".")
	if !strings.Contains(out, "--- PASS: Example") {
		t.Errorf("no example has run:\n%s", out)
	}
	if mod := must(os.ReadFile(filepath.Join(consumer, "go.mod")))(t); bytes.Contains(mod, []byte("v0.0.0-0001")) {
		t.Errorf("a module that was got requires what there is not:\n%s", mod)
	}
}

// install installs the command, and checks that the command reports its version.
func (s stranger) install(t *testing.T, version string) {
	t.Helper()
	s.run(t, t.TempDir(), "go", "install", root+"/cmd/windowstat@"+version)
	said := s.run(t, s.bin, filepath.Join(s.bin, "windowstat"), "version")
	if !strings.Contains(said, version) || !strings.Contains(said, runtime.Version()) {
		t.Errorf("windowstat version says %q", said)
	}
}

// completes checks bash completion of the commands and flags of the installed command.
func (s stranger) completes(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("there is no bash")
	}
	for line, want := range map[string]string{
		"windowstat pr":                "proxy",
		"windowstat proxy --upst":      "--upstream",
		"windowstat log --dir x --for": "--format",
		"windowstat nothing ":          "",
	} {
		const try = `PATH=$1:$PATH; . <(windowstat completion bash)
			COMP_WORDS=($2); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _windowstat; echo "${COMPREPLY[*]}"`
		if got := strings.TrimSpace(s.run(t, s.bin, "bash", "-c", try, "bash", s.bin, line)); got != want {
			t.Errorf("%q is completed by %q, want %q", line, got, want)
		}
	}
}

// distributes writes the release files for all systems, and some of them again in a different directory.
func (r repository) distributes(t *testing.T, version string) {
	t.Helper()
	elsewhere := repository{filepath.Join(t.TempDir(), "elsewhere")}
	must(r.git("clone", "--quiet", ".", elsewhere.dir))(t)
	all, again := r.dist(t, version), elsewhere.dist(t, version, "-targets", "linux/amd64,windows/arm64")
	if len(all) != 13 || len(again) != 5 {
		t.Errorf("%d and %d files, want an archive and an SBOM for six and for two systems, and SHA256SUMS", len(all),
			len(again))
	}
	var list cyclonedx.BOM
	sbom := strings.NewReader(all["windowstat-"+version+"-linux-amd64.cdx.json"])
	if err := cyclonedx.NewBOMDecoder(sbom, cyclonedx.BOMFileFormatJSON).Decode(&list); err != nil {
		t.Fatal(err)
	}
	linked := map[string]bool{}
	for _, c := range *list.Components {
		linked[c.Name] = c.Version != ""
	}
	for _, name := range []string{"std", "github.com/urfave/cli/v2", "github.com/prometheus/client_golang"} {
		if !linked[name] {
			t.Errorf("the SBOM lacks %s", name)
		}
	}
	if main := list.Metadata.Component; main.Version != version {
		t.Errorf("the SBOM is of version %q", main.Version)
	}
	for name, text := range again {
		if name == "SHA256SUMS" {
			for line := range strings.Lines(text) {
				if !strings.Contains(all[name], line) {
					t.Errorf("%s has no %s", name, line)
				}
			}
		} else if all[name] != text {
			t.Errorf("%s differs in a different directory", name)
		}
	}
}

// dist writes the files of a release, and returns their contents by name.
func (r repository) dist(t *testing.T, version string, args ...string) map[string]string {
	t.Helper()
	out := t.TempDir()
	must(output(r.path("tools"), "go",
		append([]string{"run", "./dist", "-version", version, "-out", out}, args...)...))(t)
	made := map[string]string{}
	for _, f := range must(os.ReadDir(out))(t) {
		made[f.Name()] = string(must(os.ReadFile(filepath.Join(out, f.Name())))(t))
	}
	return made
}
