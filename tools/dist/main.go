// Command dist writes the files of a release: for each system an archive of the command and its software bill of
// materials in CycloneDX format, and SHA256SUMS. The same commit and the same version of Go result in the same bytes.
//
//	go run ./dist -version v0.2.0 -out ../dist
//
// make dist runs this command in the directory tools. The checked-out tree must be clean and have the tag of the
// version.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// systems lists the systems of a release.
const systems = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

// documents are the files that each archive has in addition to the binary.
var documents = []string{"LICENSE", "README.md", "CHANGELOG.md"}

func main() {
	version := flag.String("version", "", "the release that is checked out, such as v0.2.0")
	out := flag.String("out", "../dist", "the directory of the archives")
	targets := flag.String("targets", systems, "what to build for")
	flag.Parse()
	if err := dist("..", *version, *out, strings.Split(*targets, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

func dist(tree, version, out string, targets []string) error {
	committed, err := output(tree, nil, "git", "log", "-1", "--format=%ct")
	if err != nil {
		return err
	}
	seconds, err := strconv.ParseInt(committed, 10, 64)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp("", "windowstat-dist-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary) //nolint:errcheck // nobody needs it
	var sums strings.Builder
	for _, target := range targets {
		system, arch, _ := strings.Cut(target, "/")
		binary, info, err := build(tree, temporary, version, system, arch)
		if err != nil {
			return fmt.Errorf("%s: %w", target, err)
		}
		files := []file{{filepath.Base(binary), binary, 0o755}}
		for _, name := range documents {
			files = append(files, file{filepath.Base(name), filepath.Join(tree, name), 0o644})
		}
		name := fmt.Sprintf("windowstat-%s-%s-%s", version, system, arch)
		pack, ending := tarball, ".tar.gz"
		if system == "windows" {
			pack, ending = zipped, ".zip"
		}
		at := time.Unix(seconds, 0).UTC()
		archive, err := pack(name, files, at)
		if err != nil {
			return err
		}
		materials, err := sbom(info, version, at)
		if err != nil {
			return err
		}
		for _, f := range []struct {
			name    string
			content []byte
		}{{name + ending, archive}, {name + ".cdx.json", materials}} {
			if err := os.WriteFile(filepath.Join(out, f.name), f.content, 0o644); err != nil {
				return err
			}
			fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(f.content), f.name)
		}
	}
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

// build builds the command as a static binary that does not depend on the machine. Its version comes from git: it is
// the version of the release only if the tree is clean and has the tag.
func build(tree, dir, version, system, arch string) (binary string, info *buildinfo.BuildInfo, err error) {
	binary = filepath.Join(dir, system+"-"+arch, "windowstat")
	if system == "windows" {
		binary += ".exe"
	}
	env := []string{
		"CGO_ENABLED=0", "GOOS=" + system, "GOARCH=" + arch, "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0",
		"GOEXPERIMENT=", "GOFIPS140=off", "GOWORK=off",
	}
	args := []string{"build", "-trimpath", "-buildvcs=true", "-ldflags=-s -w", "-o", binary, "./cmd/windowstat"}
	if _, err := output(tree, env, "go", args...); err != nil {
		return "", nil, err
	}
	if info, err = buildinfo.ReadFile(binary); err != nil {
		return "", nil, err
	}
	if info.Main.Version != version {
		return "", nil,
			fmt.Errorf("the tree is %s, not %q; check out the tag without local changes", info.Main.Version, version)
	}
	return binary, info, nil
}

// output runs a command and returns its output. The error includes its error output.
func output(dir string, env []string, name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	out, err := c.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}
