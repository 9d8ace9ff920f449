package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/gdamore/tcell/v2"
	"github.com/prometheus/common/config"
	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/top"
)

// topEndpoint is where the serving commands have their pages by default.
const topEndpoint = "127.0.0.1:9719"

func topCommand() *cli.Command {
	return &cli.Command{
		Name:      "top",
		Usage:     "watch the resources of an endpoint in the terminal, second by second",
		ArgsUsage: "[ADDRESS...]",
		Description: "ADDRESS is where the pages of a service are, " + topEndpoint + " by default: host:port, or http:// or https:// before it,\n" +
			"with the path of its per-second page if that is not /metrics/seconds. Several services are added up; t shows them apart.\n" +
			"Pages are read without a cursor, so nothing is taken from the servers that scrape them. The first line is the total of the\n" +
			"service, its inbound calls; where nothing is inbound there is none. ? explains keys and columns. With --once the last second\n" +
			"is written as text, columns between tabs; column kind is inbound for the total, which has no resource, and resource for the\n" +
			"others; several services are not added up, and have a column target. The exit status is 1 if one cannot be read. NO_COLOR in\n" +
			"the environment leaves out colours.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "once", Usage: "write one table as text and end; for scripts and pipes"},
			&cli.StringFlag{Name: "sort", Value: "pass", Usage: "`COLUMN` to sort by: resource, pass, block, exception, mean, p99, in_flight_avg or peak"},
			&cli.StringFlag{Name: "filter", Usage: "`TEXT` that is in the names of the resources that are shown, in upper or lower case"},
			&cli.StringFlag{Name: "http.config.file", Usage: "`FILE` with authorization, TLS and headers, in Prometheus's HTTP client configuration format"},
		},
		Action: func(c *cli.Context) error {
			endpoints, options, err := parseTop(c)
			if err != nil {
				return usage(err)
			}
			if c.Bool("once") {
				return top.Once(c.Context, c.App.Writer, endpoints, options)
			}
			screen, err := terminal(c.App.Writer)
			if err != nil {
				return err
			}
			return top.Run(c.Context, screen, endpoints, options)
		},
	}
}

// parseTop reads the arguments. The error names everything that is wrong with them.
func parseTop(c *cli.Context) (endpoints []*top.Endpoint, options top.Options, err error) {
	var errs flagErrors
	options = top.Options{Sort: c.String("sort"), Filter: c.String("filter")}
	if errs.add("sort", options.Check()); options.Sort == "" {
		errs.add("sort", errors.New("is empty; leave it out for pass"))
	}
	client := &config.DefaultHTTPClientConfig
	if path := c.String("http.config.file"); path != "" {
		if client, _, err = config.LoadHTTPConfigFile(path); err != nil {
			errs.add("http.config.file", fmt.Errorf("%s: %w", path, err))
			client = &config.DefaultHTTPClientConfig // to see what else is wrong
		}
	} else if c.IsSet("http.config.file") {
		errs.add("http.config.file", errors.New("is empty; leave it out for none"))
	}
	addresses := c.Args().Slice()
	if len(addresses) == 0 {
		addresses = []string{topEndpoint}
	}
	for _, address := range addresses {
		if strings.HasPrefix(address, "-") {
			errs = append(errs, fmt.Errorf("flags stand before addresses, got %q", addresses))
			break
		}
		endpoint, err := top.NewEndpoint(address, *client)
		switch {
		case err != nil:
			errs = append(errs, err)
		case slices.ContainsFunc(endpoints, endpoint.Same):
			errs = append(errs, fmt.Errorf("%s is given twice, and would be added up twice", endpoint.Name()))
		default:
			endpoints = append(endpoints, endpoint)
		}
	}
	return endpoints, options, errors.Join(errs...)
}

// terminal is the screen that the output goes to.
func terminal(out any) (tcell.Screen, error) {
	if f, ok := out.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		return nil, errors.New("top needs a terminal; --once writes a table to a pipe or a file")
	}
	screen, err := tcell.NewScreen()
	if err != nil {
		return nil, fmt.Errorf("the terminal cannot be used: %w (TERM is %q); --once needs none", err, os.Getenv("TERM"))
	}
	return screen, nil
}
