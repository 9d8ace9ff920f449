package main

import (
	"errors"
	"os"
	"strings"
	"time"
)

const (
	changelog  = "CHANGELOG.md"
	unreleased = "## Unreleased\n"
)

var errUnreleased = errors.New(changelog + ` says nothing below "## Unreleased"`)

// readChangelog returns the page, which has something to say about the next release.
func (r repository) readChangelog() (string, error) {
	page, err := os.ReadFile(r.path(changelog))
	if err != nil {
		return "", err
	}
	_, rest, ok := strings.Cut(string(page), unreleased)
	section, _, _ := strings.Cut(rest, "\n## ")
	if !ok || strings.TrimSpace(section) == "" {
		return "", errUnreleased
	}
	return string(page), nil
}

// closeChangelog makes what is unreleased the section of a version.
func (r repository) closeChangelog(version string, date time.Time) error {
	page, err := r.readChangelog()
	if err != nil {
		return err
	}
	heading := unreleased + "\n## " + version + " - " + date.UTC().Format(time.DateOnly) + "\n"
	return os.WriteFile(r.path(changelog), []byte(strings.Replace(page, unreleased, heading, 1)), 0o644)
}
