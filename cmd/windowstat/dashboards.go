package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/urfave/cli/v3"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/flags"
	"github.com/windowstat/windowstat/dashboards"
)

func dashboardsCommand() *cli.Command {
	var out string
	var overwrite bool
	set := flags.Set{
		{Flag: &cli.StringFlag{Name: "out", Destination: &out, Usage: "`DIRECTORY` to write to, made if it does not exist (required)"}},
		{Flag: &cli.BoolFlag{Name: "overwrite", Destination: &overwrite, Usage: "replace files that have other contents"}},
	}
	return &cli.Command{
		Name:  "dashboards",
		Usage: "write Grafana dashboards, rules and the files to set them up into a directory",
		Description: "The directory gets three dashboards, recording rules and alerts with their tests and a runbook, provisioning\n" +
			"files and a compose file; README.md there says how to use them. If a file exists already with other contents,\n" +
			"nothing is written, unless --overwrite is given.",
		Flags: set.Flags(),
		Action: func(_ context.Context, c *cli.Command) error {
			var err error
			if out == "" {
				err = errors.New("--out: a directory is needed")
			}
			if err := set.Check(c, err); err != nil {
				return err
			}
			if err := dashboards.Write(out, overwrite); err != nil {
				if errors.Is(err, dashboards.ErrChanged) {
					err = errors.Join(err, errors.New("nothing was written; --overwrite replaces what is there"))
				}
				return err
			}
			_, err = fmt.Fprintln(c.Root().Writer, "dashboards, rules and their set-up are in", out)
			return err
		},
	}
}
