package main

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/routes"
	"github.com/windowstat/windowstat/collector/httpstat"
)

// namingFlags are the flags of every command that names requests.
func namingFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "routes", Usage: "`FILE` of routes, one a line, as Go's http.ServeMux has them, such as GET /users/{id}; # begins a comment; may be given several times"},
		&cli.StringSliceFlag{Name: "route", Usage: "`PATTERN` of one route; may be given several times"},
		&cli.BoolFlag{Name: "routes-only", Usage: "count all requests that match no route for the resource unmatched"},
		&cli.IntFlag{Name: "max-path-values", Value: httpstat.DefaultMaxValues, Usage: "how many values of a path segment are told apart; any other is *"},
	}
}

// naming is how requests are named.
type naming struct {
	routes *routes.Routes
	only   bool // what matches no route is unmatched
	paths  func(*http.Request) string
	earn   httpstat.NamesOptions
}

// parseNaming reads the flags; depth is the one with the depth of paths.
func parseNaming(c *cli.Context, depth string) (n naming, err error) {
	n = naming{routes: routes.New(), only: c.Bool("routes-only"), paths: httpstat.PathName(c.Int(depth))}
	var errs flagErrors
	errs.add(depth, checkDepth(c.Int(depth)))
	for _, path := range c.StringSlice("routes") {
		n.routes.Read(path)
	}
	for _, pattern := range c.StringSlice("route") {
		n.routes.Add("--route", pattern)
	}
	errs = append(errs, n.routes.Err())
	if n.only && len(n.routes.Patterns) == 0 && n.routes.Err() == nil {
		errs.add("routes-only", errors.New("needs --routes or --route, and a route there"))
	}
	for _, flag := range []string{depth, "max-path-values"} {
		if n.only && c.IsSet(flag) {
			errs.add(flag, errors.New("is about paths, which have no names with --routes-only"))
		}
	}
	const mostValues = 1000
	values := c.Int("max-path-values")
	if values < 1 || values > mostValues {
		errs.add("max-path-values", fmt.Errorf("%d is not between 1 and %d", values, mostValues))
	}
	n.earn = httpstat.NamesOptions{Given: n.routes.Patterns, MaxNames: c.Int("max-resources"), MaxValues: values}
	return n, errors.Join(errs...)
}

// given are the names of resources that exist from the start.
func (n *naming) given() []string { return append(slices.Clone(n.routes.Patterns), httpstat.Unmatched) }

// name is the pattern of the route that a request matches; otherwise its method and path, which must be earned.
func (n *naming) name(r *http.Request) string {
	if pattern := n.routes.Name(r); pattern != "" || n.only {
		return pattern
	}
	return n.paths(r)
}

// namesFile is the state file of the metric log with the names that are earned.
const namesFile = "names.json"

// saveNamesEvery is how often they are saved: what is earned later must be earned again after a crash.
const saveNamesEvery = time.Minute

// keepNames remembers names beyond the life of the process, if there is a metric log; the function that it returns saves
// them a last time. Failures are logged: the names must be earned again then.
func keepNames(t *telemetry, names *httpstat.Names) (stop func()) {
	t.Collector.Publish(names.Metrics()...)
	if t.Log == nil {
		return func() {}
	}
	path, err := t.Log.StateFile(namesFile)
	if err == nil {
		err = names.Load(path)
	}
	if err != nil {
		t.logger.Warn("the names that were earned before are not known", "err", err)
	}
	if path == "" {
		return func() {}
	}
	failing := false
	save := func() {
		err := names.Save(path)
		if err != nil && !failing {
			t.logger.Error("cannot save the names that were earned", "err", err)
		}
		failing = err != nil
	}
	done := make(chan struct{})
	var saving sync.WaitGroup
	saving.Go(func() {
		defer save()
		every := time.NewTicker(saveNamesEvery)
		defer every.Stop()
		for {
			select {
			case <-every.C:
				save()
			case <-done:
				return
			}
		}
	})
	return func() { close(done); saving.Wait() }
}
