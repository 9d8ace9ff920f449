package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/windowstat/windowstat/dashboards"
)

func dashboardsCommand() *cli.Command {
	return &cli.Command{
		Name:  "dashboards",
		Usage: "write Grafana dashboards, rules and the files to set them up into a directory",
		Description: "The directory gets three dashboards, recording rules and alerts with their tests and a runbook, provisioning\n" +
			"files and a compose file; README.md there says how to use them. A file that is there already with other contents\n" +
			"is not replaced unless --overwrite is given; then nothing is written.",
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "out", Usage: "`DIRECTORY` to write to; it is made if need be"},
			&cli.BoolFlag{Name: "overwrite", Usage: "replace files that have other contents"},
		},
		Action: func(c *cli.Context) error {
			errs := []error{noArguments(c)}
			if c.String("out") == "" {
				errs = append(errs, errors.New("--out: a directory is needed"))
			}
			if err := errors.Join(errs...); err != nil {
				return usage(err)
			}
			err := dashboards.Write(c.String("out"), c.Bool("overwrite"))
			if errors.Is(err, dashboards.ErrChanged) {
				return errors.Join(err, errors.New("nothing was written; --overwrite replaces what is there"))
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(c.App.Writer, "dashboards, rules and their set-up are in", c.String("out"))
			return err
		},
	}
}
