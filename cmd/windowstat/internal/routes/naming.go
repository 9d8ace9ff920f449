package routes

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/urfave/cli/v3"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/flags"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// Naming is how requests are named: after routes, or after their paths, which must be earned. [Naming.Flags] fill it in.
type Naming struct {
	Files, Patterns []string // of routes
	Only            bool     // requests that match no route are unmatched
	Loose           bool     // requests are named after what [Loose] makes of them
	Depth           int      // how many segments of a path a name keeps
	MaxValues       int      // how many values of a segment have names of their own
	MaxResources    int      // how many names there are beside those of routes

	Routes *Routes // made by [Naming.Check]
}

// Flags returns the flags of the options; depth is the one of Depth.
func (n *Naming) Flags(depth string) flags.Set {
	paths := []string{"routes-only"}
	return flags.Set{
		{Flag: &cli.StringSliceFlag{Name: "routes", Destination: &n.Files, Usage: "`FILE` of routes, one a line, as Go's http.ServeMux has them, such as GET /users/{id}; # begins a comment; repeatable"}},
		{Flag: &cli.StringSliceFlag{Name: "route", Destination: &n.Patterns, Usage: "`PATTERN` of one route; repeatable"}},
		{Flag: &cli.BoolFlag{Name: "routes-only", Destination: &n.Only, Usage: "count all requests that match no route for the resource unmatched"}},
		{Flag: &cli.BoolFlag{Name: "loose-paths", Destination: &n.Loose, Usage: "the service takes /Users/5/;x=1 for /users/5: letters of either case, slashes and spaces at the end, and what follows a ; make no other name; names of paths are in lower case"}},
		{Flag: &cli.IntFlag{Name: depth, Value: httpstat.DefaultDepth, Destination: &n.Depth, Usage: "how many segments of a path a resource's name keeps"}, Of: "Depth", Not: paths, Zero: true},
		{Flag: &cli.IntFlag{Name: "max-path-values", Value: httpstat.DefaultMaxValues, Destination: &n.MaxValues, Usage: "how many values of a path segment have names of their own; all others are *"}, Of: "MaxValues", Not: paths, Zero: true},
	}.Under("Names of resources")
}

const (
	// Deeper names are those of single files, and more values are those of a database: neither is a resource.
	maxDepth  = 16
	maxValues = 1000
)

// Check reads the routes, and returns everything that is wrong with them and with the options.
func (n *Naming) Check() error {
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
			errs = append(errs, &collector.OptionError{Package: "routes", Field: field, Err: fmt.Errorf("%d is not between 1 and %d", v, most)})
		}
	}
	within("Depth", n.Depth, maxDepth)
	within("MaxValues", n.MaxValues, maxValues)
	return errors.Join(errs...)
}

// Given returns the names of resources that exist from the start.
func (n *Naming) Given() []string { return append(slices.Clone(n.Routes.Patterns), httpstat.Unmatched) }

// Earned returns how names of paths are earned.
func (n *Naming) Earned() httpstat.NamesOptions {
	return httpstat.NamesOptions{Given: n.Routes.Patterns, MaxNames: n.MaxResources, MaxValues: n.MaxValues}
}

// Name returns the function that names requests: by the pattern of the route that one matches; otherwise by method and path, unless
// only routes are names.
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
