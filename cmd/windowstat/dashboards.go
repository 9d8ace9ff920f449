package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/flags"
	"github.com/windowstat/windowstat/dashboards"
)

// dashboardsCommand is windowstat dashboards. It writes the files that package dashboards embeds, so the dashboards fit
// the version of the command.
//
// The command needs no running service and no Grafana. A user imports the files, or mounts the directory into a
// container.
func dashboardsCommand() *cli.Command {
	var out string
	var overwrite bool
	set := flags.Set{
		{
			// There is no default directory: files in the current directory would surprise the user.
			Name: "out", Value: flags.String(&out, ""),
			Usage: "`DIRECTORY` to write to, created if it does not exist (required)",
		},
		// A user may have edited the files of an earlier version. Without this flag, the command keeps the edited
		// files.
		{Name: "overwrite", Value: flags.Bool(&overwrite), Usage: "replace files that have other contents"},
	}
	return set.Command(&cli.Command{
		Name:  "dashboards",
		Usage: "write Grafana dashboards, rules and their setup to a directory",
		Description: `The directory gets three dashboards, the same ones for VictoriaMetrics's own data source,
recording rules and alerts with their tests and a runbook, provisioning files and a compose file. Its README.md explains
how to use them. If a file exists with other contents, nothing is written, unless --overwrite is given.`,
		Action: func(c *cli.Context) error {
			var err error
			// A required flag of the library would report only this error. Check reports all errors together.
			if out == "" {
				err = errors.New("--out: a directory is needed")
			}
			if err := set.Check(c, err); err != nil {
				return err
			}
			// Write compares all files before it writes the first one, so ErrChanged means that the directory is
			// unchanged.
			if err := dashboards.Write(out, overwrite); err != nil {
				if errors.Is(err, dashboards.ErrChanged) {
					err = errors.Join(err, errors.New("nothing was written; --overwrite replaces existing files"))
				}
				return err
			}
			_, err = fmt.Fprintln(c.App.Writer, "dashboards, rules and their set-up are in", out)
			return err
		},
	})
}
