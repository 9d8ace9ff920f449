package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"

	"github.com/gdamore/tcell/v2"
	"github.com/urfave/cli/v3"
	"golang.org/x/term"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/flags"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/telemetry"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/top"
)

// topCommand is windowstat top, see package top. Whether there is a terminal is known here, so that the package can be tested with a
// screen in memory.
func topCommand() *cli.Command {
	var o top.Options
	var once bool
	var client *http.Client
	sorted := func(column string) (string, error) { return column, top.Options{Sort: column}.Check() }
	set := flags.Set{
		{Flag: &cli.BoolFlag{Name: "once", Destination: &once, Usage: "write one table as text and end; for scripts and pipes"}},
		{Flag: &cli.GenericFlag{Name: "sort", Value: flags.Value(&o.Sort, "pass", sorted), Usage: "`COLUMN` to sort by: resource, pass, block, exception, mean, p99, in_flight_avg or peak"}},
		{Zero: true, Flag: &cli.StringFlag{Name: "filter", Destination: &o.Filter, Usage: "`TEXT` in the names of the resources that are shown, in upper or lower case"}},
		{Flag: &cli.GenericFlag{Name: "http.config.file", Value: flags.Value(&client, "", flags.ParseClient), Usage: flags.ClientUsage}},
	}
	return &cli.Command{
		Name:      "top",
		Usage:     "watch the resources of an endpoint in the terminal, second by second",
		ArgsUsage: "[ADDRESS...]",
		Description: "ADDRESS is where the pages of a service are, " + telemetry.DefaultListen + " by default: host:port, or http:// or https:// before it,\n" +
			"with the path of its metrics page if that is not /metrics, or of its per-second page, which is /seconds below it. Several\n" +
			"services are added up; t shows them apart. Pages are read without a cursor, so nothing is taken from the servers that scrape\n" +
			"them. The first line is the total of the service, its inbound calls; where nothing is inbound there is none. ? explains keys\n" +
			"and columns. With --once the last second is written as text, columns between tabs; column kind is inbound for the total, which\n" +
			"has no resource, and resource for the others; several services are not added up, and have a column target. The exit status is\n" +
			"1 if one cannot be read. NO_COLOR in the environment leaves out colours.",
		Flags: set.Flags(),
		Action: func(ctx context.Context, c *cli.Command) error {
			endpoints, err := parseEndpoints(c.Args().Slice(), client)
			if err := set.Check(c, err); err != nil {
				return err
			}
			if once {
				return top.Once(ctx, c.Root().Writer, endpoints, o)
			}
			screen, err := terminal(c.Root().Writer)
			if err != nil {
				return err
			}
			return top.Run(ctx, screen, endpoints, o)
		},
	}
}

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
		case slices.ContainsFunc(endpoints, endpoint.Same):
			errs = append(errs, fmt.Errorf("%s is given twice, and would be added up twice", endpoint.Name()))
		default:
			endpoints = append(endpoints, endpoint)
		}
	}
	return endpoints, errors.Join(errs...)
}

// terminal is the screen that the output goes to.
func terminal(out io.Writer) (tcell.Screen, error) {
	if f, ok := out.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		return nil, errors.New("top needs a terminal; --once writes a table to a pipe or a file")
	}
	screen, err := tcell.NewScreen()
	if err != nil {
		return nil, fmt.Errorf("the terminal cannot be used: %w (TERM is %q); --once needs none", err, os.Getenv("TERM"))
	}
	return screen, nil
}
