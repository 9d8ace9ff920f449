package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// A program is an installable server, or several of them.
type program struct {
	name    string // name of the executable in the cache, with its version
	install func(ctx context.Context, dir, executable string) error
}

var (
	prometheus3 = program{"prometheus-3.15.0", buildPrometheus("prometheus", "v0.315.0")}
	promtool    = program{"promtool-3.15.0", buildPrometheus("promtool", "v0.315.0")}
	// The first version that stores the start timestamps of remote write 2.0.
	prometheus316 = program{"prometheus-3.16.0", buildPrometheus("prometheus", "v0.316.0")}
	prometheus2   = program{"prometheus-2.42.0", unpack("prometheus", "2.42.", "usr/bin/prometheus")}
	promtool2     = program{"promtool-2.42.0", unpack("prometheus", "2.42.", "usr/bin/promtool")}
	nginx         = program{"nginx-1.22.1", unpack("nginx", "1.22.1", "usr/sbin/nginx")}
	caddy         = program{"caddy-2.10.2", buildCaddy}
	victoria      = program{"victoria-metrics-1.150.0", buildVictoria("v1.150.0", "victoria-metrics")}
	vmagent       = program{"vmagent-1.150.0", buildVictoria("v1.150.0", "vmagent")}
	// A directory of four executables.
	cluster = program{
		"victoria-metrics-cluster-1.100.0",
		buildVictoria("v1.100.0-cluster", "vmstorage", "vminsert", "vmselect", "vmagent"),
	}
)

// installTimeout is sufficient for a build on two slow cores with an empty module cache.
const installTimeout = 12 * time.Minute

// path returns the path of the program's executable. The first call installs the program.
func (p program) path(t *testing.T) string {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	cache = filepath.Join(cache, "windowstat-e2e")
	executable := filepath.Join(cache, p.name)
	if _, err := os.Stat(executable); err == nil {
		t.Logf("%s is in the cache", p.name)
		return executable
	} else if !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.MkdirAll(cache, 0o755); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp(cache, "install-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(t.Context(), installTimeout)
	defer cancel()
	begin := time.Now()
	made := filepath.Join(dir, "made")
	if err := p.install(ctx, dir, made); err != nil {
		t.Fatalf("install %s: %v", p.name, err)
	}
	// Rename in one step. An interrupted run then leaves no incomplete installation.
	if err := os.Rename(made, executable); err != nil {
		t.Fatal(err)
	}
	t.Logf("%s installed in %v", p.name, time.Since(begin).Round(time.Second))
	return executable
}

// The programs of this tree, and of its modules.
var (
	buildWindowstat = buildOnce("..", "./cmd/windowstat")
	buildHey        = buildOnce(".", "github.com/rakyll/hey") // a load generator
)

// buildOnce returns a function that returns the executable of a program. The first call builds the program. The
// executable exists until all tests have ended.
func buildOnce(dir, main string) func(t *testing.T) string {
	build := sync.OnceValues(func() (string, error) {
		executable := filepath.Join(executables, path.Base(main))
		return executable, run(context.Background(), dir, "go", "build", "-buildvcs=false", "-o", executable, main)
	})
	return func(t *testing.T) string {
		t.Helper()
		executable, err := build()
		if err != nil {
			t.Fatal(err)
		}
		return executable
	}
}

// withoutDiscovery excludes the service discovery of Prometheus, which no test needs, to shorten the build. Thanos
// reads labels in an older layout, and panics without slicelabels. The labels of the other programs have the layout of
// their releases.
const (
	withoutDiscovery = "remove_all_sd,netgo"
	asThanos         = withoutDiscovery + ",slicelabels"
)

// buildPrometheus builds a command of the module. The go.mod of the module has exclude directives, which go install
// refuses, so the command is built from a module that requires it.
func buildPrometheus(command, version string) func(ctx context.Context, dir, executable string) error {
	return func(ctx context.Context, dir, executable string) error {
		path := "github.com/prometheus/prometheus/cmd/" + command
		if err := run(ctx, dir, "go", "mod", "init", "install"); err != nil {
			return err
		}
		if err := run(ctx, dir, "go", "get", path+"@"+version); err != nil {
			return err
		}
		return run(ctx, dir, "go", "build", "-buildvcs=false", "-tags", withoutDiscovery, "-o", executable, path)
	}
}

// buildCaddy builds the command of the module.
func buildCaddy(ctx context.Context, dir, executable string) error {
	bin := filepath.Join(dir, "bin")
	if err := run(ctx, dir, "env", "GOBIN="+bin, "go", "install",
		"github.com/caddyserver/caddy/v2/cmd/caddy@v2.10.2"); err != nil {
		return err
	}
	return os.Rename(filepath.Join(bin, "caddy"), executable)
}

// buildVictoria builds apps of the module, which go get cannot fetch. Several apps are built into a directory.
func buildVictoria(version string, apps ...string) func(ctx context.Context, dir, executable string) error {
	for i, app := range apps {
		apps[i] = "./app/" + app
	}
	return buildCopy("github.com/VictoriaMetrics/VictoriaMetrics@"+version, withoutDiscovery, apps...)
}

// buildCopy builds packages of a module from a copy, because only a main module's replace directives take effect.
// Several packages are built into a directory.
func buildCopy(version, tags string, packages ...string) func(ctx context.Context, dir, executable string) error {
	return func(ctx context.Context, dir, executable string) error {
		out, err := output(ctx, dir, "go", "mod", "download", "-json", version)
		if err != nil {
			return err
		}
		var module struct{ Dir string }
		if err := json.Unmarshal(out, &module); err != nil {
			return err
		}
		source := filepath.Join(dir, "source")
		if err := os.CopyFS(source, os.DirFS(module.Dir)); err != nil {
			return err
		}
		if len(packages) > 1 {
			if err := os.Mkdir(executable, 0o755); err != nil {
				return err
			}
		}
		build := []string{"go", "build", "-mod=mod", "-tags", tags, "-buildvcs=false", "-o", executable}
		return run(ctx, source, append(build, packages...)...)
	}
}

// unpack extracts a package of Debian 12 without installing it.
func unpack(name, version, file string) func(ctx context.Context, dir, executable string) error {
	return func(ctx context.Context, dir, executable string) error {
		if run(ctx, dir, "apt-get", "download", name) != nil {
			// A new machine has no package lists yet.
			if err := run(ctx, dir, "apt-get", "update"); err != nil {
				return err
			}
			if err := run(ctx, dir, "apt-get", "download", name); err != nil {
				return err
			}
		}
		packages, err := filepath.Glob(filepath.Join(dir, name+"_"+version+"*.deb"))
		if err != nil {
			return err
		}
		if len(packages) != 1 {
			return fmt.Errorf("apt-get did not download %s %s, which Debian 12 has, but %q", name, version, packages)
		}
		if err := run(ctx, dir, "dpkg", "-x", packages[0], dir); err != nil {
			return err
		}
		return os.Rename(filepath.Join(dir, file), executable)
	}
}

func run(ctx context.Context, dir string, command ...string) error {
	_, err := output(ctx, dir, command...)
	return err
}

// output runs a command. The error contains the command's output.
func output(ctx context.Context, dir string, command ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Dir = dir
	out, err := c.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%q: %w\n%s", command, err, exit.Stderr)
	}
	return out, err
}

func TestInstall(t *testing.T) {
	for _, p := range []program{
		prometheus2, nginx, logrotate, libpopt, caddy, victoria, vmagent, cluster,
		prometheus3, promtool, promtool2, axe,
	} {
		p.path(t)
	}
}
