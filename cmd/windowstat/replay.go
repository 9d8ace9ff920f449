package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/accesslog"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/flags"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/replay"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/wallclock"
	"github.com/windowstat/windowstat/collector"
)

// replayCommand is windowstat replay: package replay counts the lines, and with --follow the ways out of package telemetry serve them.
// The default of one flag depends on another one here, so it is set when both are known.
func replayCommand() *cli.Command {
	var j replay.Job
	set := replayFlags(&j)
	return &cli.Command{
		Name:      "replay",
		Usage:     "count the calls in an access log, second by second, in their own time",
		ArgsUsage: "FILE…, or - for stdin",
		Description: `Prints a summary, and writes a metric log with --metric-log.dir, which "windowstat log" reads. Files may be packed with
gzip or zstd, and be given in any order: those of one time are merged. What they look like is guessed, unless a
format is given. Lines may be out of order by the tolerance. Those that are later, or from the future, or far ahead of those
around them, are not counted but reported; if one line in a thousand of a log is late, that is an error that names it.

The resource of a line is the route that it matches, or its method and path, as in "windowstat proxy": until the service has
answered a name with success, its calls count for the resource unmatched; --routes makes names exact from their first call.
Each line is read once. A call passes in the second in which it began and completes in the one in which it ended. Without a
duration in the log both are the second of the line, and there are no response times.

With --follow files are read as they grow, from their ends on and through rotation, and their calls are served like those of
one service, a second more than the tolerance behind the present. A quoted pattern such as '/var/log/nginx/*.log' stands for
the files that match it, also for those that appear later, which are read from their beginnings. With --metric-log.dir a
restart goes on where the metric log ends, if that is within a day, with what was rotated away meanwhile, and counts nothing
twice; without it, what was written meanwhile is not counted. Rotated files are found beside the log, beside the file to which it
leads if it is a symbolic link, and in --rotated-dir. Of a file that is truncated, the rest is read from its copy.
Lines written between the two are lost. Lines that a server keeps for longer than the tolerance are late.`,
		Flags: set.Flags(),
		Action: func(ctx context.Context, c *cli.Command) error {
			j.Replay.Files, j.Replay.Stdin = c.Args().Slice(), c.Root().Reader
			if j.Follow && !c.IsSet("tolerance") {
				j.Replay.Tolerance = replay.DefaultFollowTolerance
			}
			// One line in a thousand that is late means something else than one that cannot be read, unless a share is given for both.
			if j.LateAbove = replay.DefaultLate; c.IsSet("fail-above") {
				j.LateAbove = j.FailAbove
			}
			if err := set.Check(c, j.Check()); err != nil {
				return err
			}
			return set.Named(j.Run(ctx, c.Root().Writer, c.Root().ErrWriter))
		},
	}
}

// replayFlags are the flags of the lines, of their names, and of what serves them. Those of the last kind need --follow, but for the directory
// of the metric log, which a replay of files that end writes, too.
func replayFlags(j *replay.Job) flags.Set {
	o := &j.Replay
	formats := []string{"format", "nginx-format", "apache-format"}
	others := func(i int) []string { return slices.Delete(slices.Clone(formats), i, i+1) }
	lines := flags.Set{
		{Not: others(0), Flag: &cli.GenericFlag{Name: formats[0], Value: flags.Value(&o.Format, "", accesslog.Named), Usage: "`NAME` of the lines' format: " + strings.Join(accesslog.Names(), ", ") + " (default: a guess for each file)"}},
		{Not: others(1), Flag: &cli.GenericFlag{Name: formats[1], Value: flags.Value(&o.Format, "", accesslog.Nginx), Usage: "`STRING` of nginx's log_format"}},
		{Not: others(2), Flag: &cli.GenericFlag{Name: formats[2], Value: flags.Value(&o.Format, "", accesslog.Apache), Usage: "`STRING` of Apache's LogFormat"}},
		{Flag: &cli.GenericFlag{Name: "zone", Value: flags.Value(&o.Zone, "UTC", wallclock.Zone), Usage: "`ZONE` of times without one, such as Europe/Berlin or Local"}},
		{Of: "Tolerance", Zero: true, Flag: &cli.DurationFlag{Name: "tolerance", Value: replay.DefaultTolerance, Destination: &o.Tolerance, Usage: "`DURATION` by which lines may be out of order, in whole seconds", DefaultText: fmt.Sprintf("%v; %v with --follow", replay.DefaultTolerance, replay.DefaultFollowTolerance)}},
		{Flag: &cli.BoolFlag{Name: "follow", Destination: &j.Follow, Usage: "read files as they grow, and serve their calls"}},
		{Of: "RotatedDirs", Needs: []string{"follow"}, Flag: &cli.StringSliceFlag{Name: "rotated-dir", Destination: &o.RotatedDirs, Usage: "`DIRECTORY` into which rotation moves files, besides that of the log; repeatable"}},
		{Zero: true, Flag: &cli.GenericFlag{Name: "exception-status", Value: flags.Value(&o.Exceptions, "5xx", replay.ParseStatuses), Usage: "`STATUSES` of calls that failed, such as 5xx,404 or 500-503"}},
		{Of: "Blocks", Zero: true, Flag: &cli.GenericFlag{Name: "block-status", Value: flags.Value(&o.Blocks, "429", replay.ParseStatuses), Usage: "`STATUSES` of calls that were refused, and so did not pass"}},
		{Of: "Collector.MaxResources", Flag: &cli.IntFlag{Name: "max-resources", Value: collector.DefaultMaxResources, Destination: &j.Naming.MaxResources, Usage: "how many resources are counted apart, besides routes; calls of all others are counted together, as _other"}},
		{Of: "FailAbove", Flag: &cli.FloatFlag{Name: "fail-above", Value: 0.1, Destination: &j.FailAbove, Usage: "`SHARE` of lines that are not counted, from 0 to 1, above which the exit status is 1; also of the lines of one log that are late, " + fmt.Sprint(replay.DefaultLate) + " by default"}},
		{Of: "App", Needs: []string{"metric-log.dir"}, Flag: &cli.StringFlag{Name: "metric-log.app", Category: "Metric log", Value: "replay", Destination: &j.Telemetry.Exporter.App, Usage: "`NAME` of the application in the metric log"}},
	}
	served := j.Telemetry.Flags()
	for i, f := range served {
		if f.Names()[0] != "metric-log.dir" {
			served[i].Needs = append([]string{"follow"}, f.Needs...)
		}
	}
	return slices.Concat(lines, j.Naming.Flags("path-depth"), served)
}
