package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"

	"github.com/gdamore/tcell/v2"
	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/flags"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/telemetry"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/top"
)

// topCommand is windowstat top, see package top. This function opens the terminal, and tests of the package can use a
// screen in memory.
func topCommand() *cli.Command {
	var o top.Options
	var once bool
	// A nil client is valid: package top then uses a plain client without credentials.
	var client *http.Client
	sorted := func(column string) (string, error) { return column, top.Options{Sort: column}.Check() }
	set := flags.Set{
		// The output of --once has a fixed form, so scripts can parse it.
		{Name: "once", Value: flags.Bool(&once), Usage: "write one table as text and exit, for scripts and pipes"},
		{
			// sorted runs the check of package top while the flag is parsed, so an error names the flag.
			Name: "sort", Value: flags.Parsed(&o.Sort, "pass", sorted),
			Usage: "`COLUMN` to sort by: resource, pass, block, exception, mean, p99, in_flight_avg or peak",
		},
		{
			// An empty text is allowed, because it shows all resources.
			Name: "filter", Value: flags.String(&o.Filter, ""), Zero: true,
			Usage: "`TEXT` in the names of resources to show, in upper or lower case",
		},
		{Name: "http.config.file", Value: flags.Parsed(&client, "", flags.ParseClient), Usage: flags.ClientUsage},
	}
	return set.Command(&cli.Command{
		Name:      "top",
		Usage:     "watch the resources of a service in the terminal, every second",
		ArgsUsage: "[ADDRESS...]",
		Description: `ADDRESS is the address of a service's pages, ` + telemetry.DefaultListen + ` by default:
host:port, with http:// or https:// if needed. The path of the metrics page follows if it is not /metrics, or the path
of the per-second page, which is /seconds below it. The counts of several services are added up; the key t shows them
separately. The command reads pages without a cursor, so it takes nothing from servers that scrape them. The first
line is the total of the service, its inbound calls. It is absent if no call is inbound. The key ? explains keys and
columns.

With --once the command writes the last second as text, with tabs between columns. The column kind is inbound for the
total, which has no resource, and resource for the other rows. Several services are not added up; they have a column
target. Exit status 1 means that a service could not be read. NO_COLOR in the environment disables colors.`,
		Action: func(c *cli.Context) error {
			// The addresses are arguments, so their errors name the address instead of a flag.
			endpoints, err := parseEndpoints(c.Args().Slice(), client)
			if err := set.Check(c, err); err != nil {
				return err
			}
			if once {
				return top.Once(c.Context, c.App.Writer, endpoints, o)
			}
			screen, err := terminal(c.App.Writer)
			if err != nil {
				return err
			}
			return top.Run(c.Context, screen, endpoints, o)
		},
	})
}

// parseEndpoints returns the endpoints of the addresses, or of the default address without addresses. The error joins
// the errors of all addresses. Two addresses of the same page are an error, because its counts would be added twice.
func parseEndpoints(addresses []string, client *http.Client) (endpoints []*top.Endpoint, err error) {
	if len(addresses) == 0 {
		addresses = []string{telemetry.DefaultListen}
	}
	var errs []error
	for _, address := range addresses {
		endpoint, err := top.NewEndpoint(address, client)
		switch {
		case err != nil:
			errs = append(errs, err)
		// Two texts may mean the same page, with and without the path /metrics/seconds, so Same compares the URLs.
		case slices.ContainsFunc(endpoints, endpoint.Same):
			errs = append(errs, fmt.Errorf("%s is given twice, so its calls would count twice", endpoint.Name()))
		default:
			endpoints = append(endpoints, endpoint)
		}
	}
	return endpoints, errors.Join(errs...)
}

// terminal returns the screen of the terminal that out writes to, or an error if out is not a terminal.
func terminal(out io.Writer) (tcell.Screen, error) {
	// A test passes a buffer as out, and a shell may pass a pipe. In both cases there is no terminal.
	if f, ok := out.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		return nil, errors.New("top needs a terminal; --once writes a table to a pipe or a file")
	}
	// NewScreen reads the description of the terminal that TERM names, and fails for an unknown one.
	screen, err := tcell.NewScreen()
	if err != nil {
		return nil, fmt.Errorf("the terminal cannot be used: %w (TERM is %q); --once works without a terminal", err,
			os.Getenv("TERM"))
	}
	return screen, nil
}
