package main

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
)

// skips are requests that are not counted: a http.ServeMux for each pattern, because some that may stand side by side here, such
// as /healthz and OPTIONS /, are a conflict in one.
type skips []*http.ServeMux

// parseSkips parses patterns as http.ServeMux has them.
func parseSkips(patterns []string) (all skips, err error) {
	var errs []error
	for _, p := range patterns {
		mux := http.NewServeMux()
		if err := register(mux, p); err != nil {
			errs = append(errs, fmt.Errorf("%q is not a pattern, such as /healthz, /static/ or OPTIONS /: %w", p, err))
			continue
		}
		all = append(all, mux)
	}
	return all, errors.Join(errs...)
}

// match reports whether a request is one of them.
func (s skips) match(r *http.Request) bool {
	return slices.ContainsFunc(s, func(mux *http.ServeMux) bool { return match(mux, r) != "" })
}
