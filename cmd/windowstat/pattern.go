package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
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
		for _, match := range all {
			if match(name) {
				return true
			}
		}
		return false
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
	parts := strings.Split(p, "*")
	if len(parts) == 1 {
		return func(name string) bool { return name == p }, nil
	}
	begin, middle, end := parts[0], parts[1:len(parts)-1], parts[len(parts)-1]
	return func(name string) bool {
		rest, ok := strings.CutPrefix(name, begin)
		for _, part := range middle { // the first place is as good as any
			if ok {
				_, rest, ok = strings.Cut(rest, part)
			}
		}
		return ok && strings.HasSuffix(rest, end)
	}, nil
}
