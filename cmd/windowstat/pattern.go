package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/windowstat/windowstat/collector"
)

// patternHelp is what a pattern may look like.
const patternHelp = "NAME, in which * stands for any characters, / too, or ~ and a regular expression for the whole name"

// parsePatterns makes one function of the patterns of --resource, any of which a name may match; nil if there are none. The error names
// all that are wrong.
func parsePatterns(patterns []string) (func(name string) bool, error) {
	var all []func(string) bool
	var errs []error
	for _, p := range patterns {
		match, err := parsePattern(p)
		if err != nil {
			errs = append(errs, fmt.Errorf("--resource: %w", err))
		}
		all = append(all, match)
	}
	if err := errors.Join(errs...); err != nil || len(all) == 0 {
		return nil, err
	}
	return func(name string) bool {
		return slices.ContainsFunc(all, func(match func(string) bool) bool { return match(name) })
	}, nil
}

func parsePattern(p string) (func(string) bool, error) {
	if p == "" {
		return nil, errors.New("is empty; " + patternHelp + " is needed")
	}
	if expression, ok := strings.CutPrefix(p, "~"); ok {
		if _, err := regexp.Compile(expression); err != nil {
			return nil, fmt.Errorf("%q: %w", p, err)
		}
		return regexp.MustCompile(`^(?s:` + expression + `)$`).MatchString, nil
	}
	return collector.Limit{Resource: p}.Matches, nil // limits have the same patterns
}
