package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

// release makes all checks first, and only then changes files, commits and tags. It runs test last, after all other
// checks pass.
func (r repository) release(version string, date time.Time, test func() error) error {
	if err := r.check(version); err != nil {
		return err
	}
	if err := test(); err != nil {
		return fmt.Errorf("the tests: %w", err)
	}
	files, err := r.git("ls-files", "*/go.mod")
	if err != nil {
		return err
	}
	for file := range strings.FieldsSeq(files) {
		if err := pin(r.path(file), version); err != nil {
			return err
		}
	}
	if err := r.closeChangelog(version, date); err != nil {
		return err
	}
	if _, err := r.git("commit", "--all", "--message", "Release "+version); err != nil {
		return err
	}
	tags, err := r.tags(version)
	for _, tag := range tags {
		if err == nil {
			_, err = r.git("tag", "--annotate", "--message", tag, tag)
		}
	}
	return err
}

// check returns all errors that prevent the release of a version.
func (r repository) check(version string) error {
	if semver.Canonical(version) != version || semver.Major(version) > "v1" {
		return fmt.Errorf("%q is not a version such as v0.2.0 or v1.0.0-rc.1; from v2 on the module needs another path",
			version)
	}
	status, err := r.git("status", "--porcelain")
	if err != nil {
		return err
	}
	var errs []error
	if status != "" {
		errs = append(errs, fmt.Errorf("the tree is not clean:\n%s", status))
	}
	tags, err := r.tags(version)
	if err != nil {
		return err
	}
	for _, tag := range tags {
		if _, err := r.git("rev-parse", "--verify", "--quiet", "refs/tags/"+tag); err == nil {
			errs = append(errs, fmt.Errorf("there is a tag %s", tag))
		}
	}
	_, err = r.readChangelog()
	errs = append(errs, err)
	change, err := r.api(io.Discard)
	if err == nil && change.last != "" && semver.Compare(version, change.next()) < 0 {
		err = fmt.Errorf("%s is too low: after %s, and what make api shows, it is at least %s",
			version, change.last, change.next())
	}
	return errors.Join(append(errs, err)...)
}

// pin makes a module that requires the root require the released version. It also pins the modules that are not
// released with the root: if they require a released module, Go demands at least the version of the root that the
// released module requires. pin keeps the replace directive. Go follows replace directives of the main module only, so
// developers build against the tree, and users of the module get the version.
func pin(file, version string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	m, err := modfile.Parse(path.Base(file), text, nil)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(m.Require, func(x *modfile.Require) bool { return x.Mod.Path == root }) {
		return nil
	}
	if err := m.AddRequire(root, version); err != nil {
		return err
	}
	if text, err = m.Format(); err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644)
}
