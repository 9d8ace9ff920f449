package main

import (
	"errors"
	"fmt"
	"net/http"
)

// skips are requests that are not counted: a http.ServeMux for each pattern, because some that may stand side by side here, such
// as /healthz and OPTIONS /, are a conflict in one.
type skips []*http.ServeMux

// parseSkips parses patterns as http.ServeMux has them.
func parseSkips(patterns []string) (all skips, err error) {
	var errs []error
	for _, p := range patterns {
		mux, err := muxOf(p)
		if err != nil {
			errs = append(errs, fmt.Errorf("%q is not a pattern, such as /healthz, /static/ or OPTIONS /: %w", p, err))
			continue
		}
		all = append(all, mux)
	}
	return all, errors.Join(errs...)
}

// muxOf makes a mux with one pattern, which panics if that is none.
func muxOf(pattern string) (mux *http.ServeMux, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("%v", v)
		}
	}()
	mux = http.NewServeMux()
	mux.Handle(pattern, http.NotFoundHandler())
	return mux, nil
}

// match reports whether a request is one of them.
func (s skips) match(r *http.Request) bool {
	for _, mux := range s {
		if match(mux, r) != "" {
			return true
		}
	}
	return false
}
