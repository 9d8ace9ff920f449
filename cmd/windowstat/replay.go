package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/accesslog"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/flags"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/replay"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/wallclock"
	"github.com/windowstat/windowstat/collector"
)

// replayCommand is windowstat replay. Package replay counts the lines. With --follow, the exporters of package
// telemetry serve the counts. The defaults of two options depend on whether another flag is set, so the action sets
// them.
func replayCommand() *cli.Command {
	var j replay.Job
	// The action below uses set to find out whether the user gave a flag.
	set := replayFlags(&j)
	return set.Command(&cli.Command{
		Name:      "replay",
		Usage:     "count the calls in an access log, in the seconds in which they were",
		ArgsUsage: "FILE…, or - for stdin",
		Description: `Prints a summary, and with --metric-log.dir writes a metric log, which "windowstat log" reads.
Files may be compressed with gzip or zstd. Their order does not matter: files of the same time are merged. The format
of each file is detected, unless a flag sets it. Lines may be out of order by the tolerance. Lines that are later, in
the future, or far ahead of the lines around them are reported and not counted. If one line in a thousand of a log is
late, an error names the log.

The resource of a line is the route that it matches, or its method and path, as in "windowstat proxy": a path becomes
a name when the service has answered it with success, and until then its calls count for the resource unmatched.
--routes makes names exact from their first call. Each line is read once. A call passes in the second in which it
began and completes in the second in which it ended. Without a duration in the log, both are the second of the line,
and response times are absent.

With --follow, files are read as they grow, from their ends and through rotation. Their calls are served like those of
one service, one second more than the tolerance behind the current time. A quoted pattern such as
'/var/log/nginx/*.log' includes files that appear later, which are read from their beginnings. With --metric-log.dir a
restart continues at the end of the metric log, if that is within a day, also with files that were rotated in the
meantime, and counts nothing twice. Without it, lines written during the restart are not counted. Rotated files are
found in the directory of the log, in the directory of its target if it is a symbolic link, and in --rotated-dir. If a
file is truncated, the rest is read from its copy. Lines written between copying and truncating are lost. Lines that a
server buffers for longer than the tolerance are late.`,
		Action: func(c *cli.Context) error {
			// The arguments of the command are the files. Package replay checks that there is at least one.
			j.Replay.Files, j.Replay.Stdin = c.Args().Slice(), c.App.Reader
			// With --follow, the tolerance delays all seconds, so its default is smaller there.
			if j.Follow && !set.IsSet("tolerance") {
				j.Replay.Tolerance = replay.DefaultFollowTolerance
			}
			// The two shares have different defaults, because late lines are a different problem from unreadable ones.
			// An explicit --fail-above sets both.
			if j.LateAbove = replay.DefaultLate; set.IsSet("fail-above") {
				j.LateAbove = j.FailAbove
			}
			if err := set.Check(c, j.Check()); err != nil {
				return err
			}
			return set.Named(j.Run(c.Context, c.App.Writer, c.App.ErrWriter))
		},
	})
}

// replayFlags returns the flags of lines, of names, and of the exporters. Without --follow nothing is served, so the
// flags of the exporters require it. The exception is --metric-log.dir, because a replay of complete files writes a
// metric log, too.
func replayFlags(j *replay.Job) flags.Set {
	// Flags creates a new set, so its elements can be changed here.
	served := j.Telemetry.Flags()
	for i, f := range served {
		// The requirement is first in Needs, so a message about --follow precedes messages about other flags.
		if f.Name != "metric-log.dir" {
			served[i].Needs = append([]string{"follow"}, f.Needs...)
		}
	}
	return slices.Concat(lineFlags(j), j.Naming.Flags("path-depth"), served)
}

// lineFlags returns the flags for reading lines. Three of them set the format in different syntaxes, and exclude each
// other.
func lineFlags(j *replay.Job) flags.Set {
	// o has the options for reading lines, and j has the options of the command.
	o := &j.Replay
	return flags.Set{
		{
			// Without a format, each file is examined separately, so files of different servers can be merged.
			Name: "format", Value: flags.Parsed(&o.Format, "", accesslog.Named).Suggest(accesslog.Names()...),
			Not: []string{"nginx-format", "apache-format"},
			Usage: "`NAME` of the lines' format: " + strings.Join(accesslog.Names(), ", ") +
				" (default: detected for each file)",
		},
		{
			// The user copies the text, with its variables such as $status, from the configuration of the server.
			Name: "nginx-format", Value: flags.Parsed(&o.Format, "", accesslog.Nginx),
			Not:   []string{"format", "apache-format"},
			Usage: "`STRING` of nginx's log_format",
		},
		{
			// All three flags set the same field. Not makes a combination an error. Otherwise the last flag would
			// replace the others without a message.
			Name: "apache-format", Value: flags.Parsed(&o.Format, "", accesslog.Apache),
			Not:   []string{"format", "nginx-format"},
			Usage: "`STRING` of Apache's LogFormat",
		},
		{
			// Well-known formats need no mapping. This flag is for the JSON of other programs.
			Name: "json-field", Value: flags.Map(&j.Keys), Of: "Keys", Not: []string{"nginx-format", "apache-format"},
			Usage: "`FIELD=PATH` of a key in JSON, such as status=http.response.code; fields are time (the end of a " +
				"call), start, status, grpc, duration, request, method, target, host and client; repeatable",
		},
		{
			// The text is parsed by package replay, because its meaning depends on --zone.
			Name: "from", Value: flags.String(&j.From, ""), Not: []string{"follow"},
			Usage: "`TIME` of the first second of lines that count, as in windowstat log (default: no bound)",
		},
		{
			Name: "to", Value: flags.String(&j.To, ""), Not: []string{"follow"},
			Usage: "`TIME` of the last second of lines that count (default: no bound)",
		},
		{
			// Most formats have an offset in each time. The zone is for formats without one.
			Name: "zone", Value: flags.Parsed(&o.Zone, "UTC", wallclock.Zone),
			Usage: "`ZONE` of times without one, such as Europe/Berlin or Local",
		},
		{
			// A server writes a line when a call ends, and several workers write concurrently. So lines are not in
			// exact order.
			Name: "tolerance", Value: flags.Number(&o.Tolerance, replay.DefaultTolerance), Of: "Tolerance", Zero: true,
			Usage:   "maximum `DURATION` by which lines are out of order, in whole seconds",
			Default: fmt.Sprintf("%v; %v with --follow", replay.DefaultTolerance, replay.DefaultFollowTolerance),
		},
		// --follow turns the command from a job that ends into a service.
		{Name: "follow", Value: flags.Bool(&j.Follow), Usage: "read files as they grow, and serve their calls"},
		{
			// A program such as logrotate may move old files to a separate directory.
			Name: "rotated-dir", Value: flags.Strings(&o.RotatedDirs), Of: "RotatedDirs", Needs: []string{"follow"},
			Usage: "`DIRECTORY` of rotated files, in addition to that of the log; repeatable",
		},
		{
			// Zero allows an empty text, which means that no status is an exception.
			Name: "exception-status", Value: flags.Parsed(&o.Exceptions, "5xx", replay.ParseStatuses), Zero: true,
			Usage: "`STATUSES` of calls that failed, such as 5xx,404 or 500-503",
		},
		{
			// A 429 is the usual status of a refusal by a limit. Servers that refuse with 503 need this flag.
			Name: "block-status", Value: flags.Parsed(&o.Blocks, "429", replay.ParseStatuses), Of: "Blocks", Zero: true,
			Usage: "`STATUSES` of calls that were refused, and so did not pass",
		},
		{
			// A log has the paths of all clients, including scanners. The limit bounds the memory for their names.
			Name: "max-resources", Value: flags.Number(&j.Naming.MaxResources, collector.DefaultMaxResources),
			Of:    "Collector.MaxResources",
			Usage: "maximum `NUMBER` of resources in addition to routes; calls of all others count for _other",
		},
		{
			// A replay of a wrong format counts almost nothing. The exit status makes a script notice it.
			Name: "fail-above", Value: flags.Number(&j.FailAbove, 0.1), Of: "FailAbove",
			Usage: "`SHARE` of lines that are not counted, from 0 to 1, above which the exit status is 1; also of " +
				"late lines in one log, for which the default is " + fmt.Sprint(replay.DefaultLate),
		},
		{
			Name: "metric-log.app", Value: flags.String(&j.Telemetry.Exporter.App, "replay"), Of: "App",
			Category: "Metric log", Needs: []string{"metric-log.dir"},
			Usage: "`NAME` of the application in the metric log",
		},
	}
}
