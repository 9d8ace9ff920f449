package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/semver"
)

// change describes the changes of the exported API since the last release.
type change struct {
	last         string // release, or empty before the first
	incompatible bool
}

// next returns the lowest version that may follow. Before v1, incompatible changes need a new minor version.
func (c change) next() string {
	var major, minor, patch int
	if _, err := fmt.Sscanf(c.last, "v%d.%d.%d", &major, &minor, &patch); err != nil {
		panic(err) // it is a valid version
	}
	switch {
	case semver.Prerelease(c.last) != "":
		return c.last // a prerelease may change; its tag is in use
	case !c.incompatible:
		return fmt.Sprintf("v%d.%d.%d", major, minor, patch+1)
	case major == 0:
		return fmt.Sprintf("v0.%d.0", minor+1)
	}
	return fmt.Sprintf("v%d.0.0", major+1)
}

// api compares the exported API of every module with the last release, and writes the differences.
func (r repository) api(w io.Writer) (c change, err error) {
	if c.last, err = r.last(); err != nil {
		return c, err
	}
	if c.last == "" {
		fmt.Fprintln(w, "there is no release yet to compare the exported surface with")
		return c, nil
	}
	temporary, err := os.MkdirTemp("", "windowstat-api-")
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temporary)) }()
	apidiff := filepath.Join(temporary, "apidiff")
	if _, err := output(r.path("tools"), "go", "build", "-o", apidiff, "golang.org/x/exp/cmd/apidiff"); err != nil {
		return c, err
	}
	old := repository{filepath.Join(temporary, "old")}
	if _, err := r.git("worktree", "add", "--detach", old.dir, c.last); err != nil {
		return c, err
	}
	defer func() {
		_, e := r.git("worktree", "remove", "--force", old.dir)
		err = errors.Join(err, e)
	}()
	dirs, err := old.nested()
	if err != nil {
		return c, err
	}
	for _, dir := range append([]string{"."}, dirs...) {
		path := strings.TrimSuffix(root+"/"+dir, "/.")
		surface := filepath.Join(temporary, "surface")
		if _, err := output(old.path(dir), apidiff, "-m", "-w", surface, path); err != nil {
			return c, err
		}
		diff, err := output(r.path(dir), apidiff, "-m", surface, path)
		if err != nil {
			return c, err
		}
		fmt.Fprintf(w, "%s since %s: ", path, c.last)
		if diff == "" {
			diff = "no change"
		}
		fmt.Fprintln(w, diff)
		c.incompatible = c.incompatible || strings.Contains(diff, "Incompatible changes:")
	}
	return c, nil
}
