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

// readChangelog returns the changelog. It fails if the section of the next release is empty.
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

// closeChangelog turns the unreleased section into the section of a version.
func (r repository) closeChangelog(version string, date time.Time) error {
	page, err := r.readChangelog()
	if err != nil {
		return err
	}
	heading := unreleased + "\n## " + version + " - " + date.UTC().Format(time.DateOnly) + "\n"
	return os.WriteFile(r.path(changelog), []byte(strings.Replace(page, unreleased, heading, 1)), 0o644)
}
