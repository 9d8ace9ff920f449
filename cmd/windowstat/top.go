package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/gdamore/tcell/v2"
	"github.com/prometheus/common/config"
	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/top"
)

// topEndpoint is where the serving commands have their pages by default.
const topEndpoint = "http://127.0.0.1:9719"

func topCommand() *cli.Command {
	return &cli.Command{
		Name:      "top",
		Usage:     "watch the resources of an endpoint in the terminal, second by second",
		ArgsUsage: "[URL]",
		Description: "URL is where the pages of a service are, " + topEndpoint + " by default: http://host:port or https://host:port,\n" +
			"with the path of its per-second page if that is not /metrics/seconds. It is read without a cursor, so nothing is taken\n" +
			"from the servers that scrape it. The first line is the total of the service, its inbound calls. Where nothing is inbound it\n" +
			"is called sum, of all resources: a call below another one counts again there. With --once the last second is written as\n" +
			"text, columns between tabs; column kind is inbound or sum for the first line, which has no resource, and resource for the\n" +
			"others. The exit status is 1 if it cannot be read. NO_COLOR in the environment leaves out colours.",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "once", Usage: "write one table as text and end; for scripts and pipes"},
			&cli.StringFlag{Name: "sort", Value: "pass", Usage: "`COLUMN` to sort by: resource, pass, block, exception, mean, p99, in_flight or peak"},
			&cli.StringFlag{Name: "filter", Usage: "`TEXT` that is in the names of the resources that are shown, in upper or lower case"},
			&cli.StringFlag{Name: "http.config.file", Usage: "`FILE` with authorization, TLS and headers, in Prometheus's HTTP client configuration format"},
		},
		Action: func(c *cli.Context) error {
			endpoint, options, err := parseTop(c)
			if err != nil {
				return usage(err)
			}
			if c.Bool("once") {
				return top.Once(c.Context, c.App.Writer, endpoint, options)
			}
			screen, err := terminal(c.App.Writer)
			if err != nil {
				return err
			}
			return top.Run(c.Context, screen, endpoint, options)
		},
	}
}

// parseTop reads the arguments. The error names everything that is wrong with them.
func parseTop(c *cli.Context) (*top.Endpoint, top.Options, error) {
	var errs []error
	wrong := func(flag string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", flag, err))
		}
	}
	options := top.Options{Sort: c.String("sort"), Filter: c.String("filter")}
	if wrong("sort", options.Check()); options.Sort == "" {
		wrong("sort", errors.New("is empty; leave it out for pass"))
	}
	client := config.DefaultHTTPClientConfig
	if path := c.String("http.config.file"); path != "" {
		loaded, _, err := config.LoadHTTPConfigFile(path)
		if err != nil {
			wrong("http.config.file", fmt.Errorf("%s: %w", path, err))
		} else {
			client = *loaded
		}
	} else if c.IsSet("http.config.file") {
		wrong("http.config.file", errors.New("is empty; leave it out for none"))
	}
	url := topEndpoint
	switch c.NArg() {
	case 0:
	case 1:
		url = c.Args().First()
	default:
		errs = append(errs, fmt.Errorf("top takes one URL, after the flags, got %q", c.Args().Slice()))
		return nil, options, errors.Join(errs...)
	}
	endpoint, err := top.NewEndpoint(url, client)
	return endpoint, options, errors.Join(append(errs, err)...)
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
