package routes

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/flags"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// Naming has the options that name requests: by routes, or by paths, which must be earned. [Naming.Flags] fill it in.
//
// With depth 2, and the route GET /users/{id}:
//
//	request           name                 with Only
//	GET /users/5      GET /users/{id}      GET /users/{id}
//	GET /a/b/c        from method, path    unmatched
//	                  and depth
type Naming struct {
	Files, Patterns []string // of routes
	Only            bool     // requests that match no route count for the resource unmatched
	Loose           bool     // requests are named after [Loose] has changed them
	Depth           int      // number of path segments in a name
	MaxValues       int      // number of values of a segment that have their own names
	MaxResources    int      // number of names in addition to routes

	Routes *Routes // set by [Naming.Check]
}

// Flags returns the flags of the options. depth is the name of the flag for Depth.
func (n *Naming) Flags(depth string) flags.Set {
	paths := []string{"routes-only"}
	return flags.Set{
		{
			Name: "routes", Value: flags.Strings(&n.Files),
			Usage: "`FILE` of routes, one per line, in the syntax of Go's http.ServeMux, such as GET /users/{id}; " +
				"# begins a comment; repeatable",
		},
		{Name: "route", Value: flags.Strings(&n.Patterns), Usage: "`PATTERN` of one route; repeatable"},
		{
			Name: "routes-only", Value: flags.Bool(&n.Only),
			Usage: "count all requests that match no route for the resource unmatched",
		},
		{
			Name: "loose-paths", Value: flags.Bool(&n.Loose),
			Usage: "ignore case, slashes and spaces at the end, and everything after a ; in paths, as a service " +
				"does that takes /Users/5/;x=1 for /users/5; names of paths are in lower case",
		},
		{
			Name: depth, Value: flags.Number(&n.Depth, httpstat.DefaultDepth), Of: "Depth", Not: paths, Zero: true,
			Usage: "`NUMBER` of path segments in the name of a resource",
		},
		{
			Name: "max-path-values", Value: flags.Number(&n.MaxValues, httpstat.DefaultMaxValues),
			Of: "MaxValues", Not: paths, Zero: true,
			Usage: "maximum `NUMBER` of values of a path segment with their own names; all others are *",
		},
	}.Under("Names of resources")
}

const (
	// Deeper names would name single files, and more values would be the contents of a database.
	maxDepth  = 16
	maxValues = 1000
)

// Check reads the routes, and returns all errors in them and in the options.
func (n *Naming) Check() error {
	// Start from an empty set, so a second call of Check does not find its own routes as duplicates.
	n.Routes = New(n.Loose)
	for _, path := range n.Files {
		n.Routes.Read(path)
	}
	for _, pattern := range n.Patterns {
		n.Routes.Add("--route", pattern)
	}
	errs := []error{n.Routes.Err()}
	if n.Only && len(n.Routes.Patterns) == 0 && n.Routes.Err() == nil {
		errs = append(errs, errors.New("--routes-only: needs --routes or --route, and a route there"))
	}
	within := func(field string, v, most int) {
		if v < 1 || v > most {
			err := fmt.Errorf("%d is not between 1 and %d", v, most)
			errs = append(errs, &collector.OptionError{Package: "routes", Field: field, Err: err})
		}
	}
	within("Depth", n.Depth, maxDepth)
	within("MaxValues", n.MaxValues, maxValues)
	return errors.Join(errs...)
}

// Given returns the names of resources that exist from the start.
//
// The names are the patterns of the routes, and the name for requests without one. They need no request to exist, so a
// route without traffic has zeros instead of no data.
func (n *Naming) Given() []string { return append(slices.Clone(n.Routes.Patterns), httpstat.Unmatched) }

// Earned returns the options for names that are earned.
func (n *Naming) Earned() httpstat.NamesOptions {
	return httpstat.NamesOptions{Given: n.Routes.Patterns, MaxNames: n.MaxResources, MaxValues: n.MaxValues}
}

// Name returns the function that names requests: by the pattern of the matching route, or else by method and path. With
// Only it returns an empty name for a request that matches no route.
func (n *Naming) Name() func(*http.Request) string {
	path := httpstat.PathName(n.Depth)
	return func(r *http.Request) string {
		if n.Loose {
			r = Loose(r)
		}
		if pattern := n.Routes.Name(r); pattern != "" || n.Only {
			return pattern
		}
		return path(r)
	}
}
