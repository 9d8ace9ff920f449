package main

import (
	"errors"
	"fmt"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// root is the path of the root module.
const root = "github.com/windowstat/windowstat"

// repository is a work tree.
type repository struct{ dir string }

// git runs a git command and returns its output.
func (r repository) git(args ...string) (string, error) { return output(r.dir, "git", args...) }

// output runs a command and returns its output. The error contains the command's error output.
func output(dir, name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Dir = dir
	out, err := c.Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, exit.Stderr)
	}
	return strings.TrimSpace(string(out)), err
}

// nested returns the directories of the modules that are released with the root, the direct subdirectories of
// collector. The other modules are for developers of windowstat.
func (r repository) nested() (dirs []string, err error) {
	files, err := r.git("ls-files", ":(glob)collector/*/go.mod")
	for file := range strings.FieldsSeq(files) {
		dirs = append(dirs, path.Dir(file))
	}
	return dirs, err
}

// tags returns the tags of a release. Go finds a module below the root by a tag with the module's directory before the
// version.
func (r repository) tags(version string) ([]string, error) {
	dirs, err := r.nested()
	tags := []string{version}
	for _, dir := range dirs {
		tags = append(tags, path.Join(dir, version))
	}
	return tags, err
}

// last returns the newest release in the history of the checked-out commit, or an empty string.
func (r repository) last() (string, error) {
	tags, err := r.git("tag", "--list", "v*", "--merged", "HEAD")
	versions := slices.DeleteFunc(strings.Fields(tags), func(v string) bool { return !semver.IsValid(v) })
	if err != nil || len(versions) == 0 {
		return "", err
	}
	return slices.MaxFunc(versions, semver.Compare), nil
}

// push returns the command that publishes a release.
func (r repository) push(version string) (string, error) {
	tags, err := r.tags(version)
	return "git push --atomic origin HEAD " + strings.Join(tags, " "), err
}

func (r repository) path(elements ...string) string {
	return filepath.Join(append([]string{r.dir}, elements...)...)
}
