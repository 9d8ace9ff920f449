package main

import (
	"errors"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/flags"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/logquery"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/wallclock"
)

// logCommand is windowstat log. Package logquery finds and prints the rows. The commands onset, backtest, report and
// verify select rows with the same flags, see [sourceFlags].
//
// Options.Source selects the rows, and is the part that several commands share. All other options select and format the
// output.
func logCommand() *cli.Command {
	var o logquery.Options
	set := append(sourceFlags(&o.Source, ""), logFlags(&o)...)
	return set.Command(&cli.Command{
		Name:        "log",
		Usage:       "search, convert and follow the metric log",
		Description: logDescription(),
		Action: func(c *cli.Context) error {
			// Read the current time once: all relative times of the command refer to the same instant.
			q, err := logquery.New(o, time.Now(), c.App.ErrWriter)
			if err := set.Check(c, err); err != nil {
				return err
			}
			// If the output is a pipe to head or less, a write fails after they have exited. Such an error does not
			// concern the command. Ignore the signal of such a write, because it would end the program.
			signal.Ignore(syscall.SIGPIPE)
			// The program at the end of the pipe has read enough rows. A message about its exit would only disturb the
			// user.
			if err = q.Run(c.Context, c.App.Writer); errors.Is(err, syscall.EPIPE) {
				return nil
			}
			return err
		},
	})
}

// logDescription returns the text of --help. Parts of it are from package logquery, where the syntax is parsed.
func logDescription() string {
	return `Prints the rows from --from to --to, both included. Without both flags these are the last 15 minutes. A
time is one of
  ` + logquery.TimeHelp + `.
A time without an offset is in --zone, and a time without a date is today's. A day, such as yesterday or 2026-01-02,
is its first second in --from and its last second in --to.

A resource is ` + logquery.PatternHelp + `.

A condition of --where is ` + logquery.WhereHelp + `. The columns are ` + logquery.ColumnNames(false) + `. The
condition selects rows of single seconds, before they are added up.

The format table is for reading, and escapes unprintable characters in names. json has one line per row, with the
names of the per-second metrics. csv has a header; a name that a spreadsheet would calculate begins with an
apostrophe. sentinel prints the lines of the log unchanged, and ignores --zone. The last row of a second is all
inbound traffic, __total_inbound_traffic__. Omit it from sums.

--step, --top and --summary add rows up, by application and resource: --step for each step, --summary over the range.
Steps begin at midnight in --zone. --from and --to may cut the first and the last step. Counts are sums. in_flight_max
is the highest of any second in one process. rt_avg is the average of all calls, at most 1ms too low, because the log
has whole milliseconds. Quantiles do not add up, so they are absent. peak and its time are the second with the highest
value of --by, or the first such second. --top omits __total_inbound_traffic__. The table of one step over the range
has rates, shares and the second with the worst average response time, instead of the columns that do not add up.

windowstat onset prints the resources that changed first, windowstat backtest the calls that a limit would have
refused. windowstat verify compares a database with the log, and fills its gaps.

Exit status 1 means that a file could not be read or written, 2 that the arguments are wrong.`
}

// logFlags returns the flags of windowstat log that the other commands do not have: the output, and sums.
//
// Package logquery parses the texts of --where and --by, and its errors list the valid texts.
func logFlags(o *logquery.Options) flags.Set {
	follow := []string{"follow"} // sums need an end of the range
	by := strings.Split(logquery.ColumnNames(true), ", ")
	return flags.Set{
		{
			// A range that follows the log has no end, so --to contradicts it.
			Name: "follow", Value: flags.Bool(&o.Source.Follow), Not: []string{"to"},
			Usage: "print rows as they are logged, beginning at --from or now, until interrupted",
		},
		{
			// The formats are from package logquery, so a new format needs no change here.
			Name: "format", Value: flags.OneOf(&o.Output, "table", logquery.Formats()...),
			Usage: "`FORMAT` of the rows: " + strings.Join(logquery.Formats(), ", "),
		},
		{
			// Zero allows an empty text here, because the parser reports it with the syntax of a condition.
			Name: "where", Value: flags.List(&o.Where, logquery.ParseCondition), Zero: true,
			Usage: "`CONDITION` that a row must meet, such as block>0; repeatable, all must be met",
		},
		{
			// Sums are complete only at the end of the range, and --follow has no end.
			Name: "summary", Value: flags.Bool(&o.Summary), Not: follow,
			Usage: "print sums over the range for each resource instead of rows",
		},
		{
			// --summary adds up the whole range, so it contradicts a step.
			Name: "step", Value: flags.Number(&o.Step, 0), Not: []string{"follow", "summary"},
			Usage: "print sums for each `DURATION`, such as 1m, instead of rows",
		},
		{
			// --top can be combined with --step: then it limits the resources of each step.
			Name: "top", Value: flags.Number(&o.Top, 0), Not: follow,
			Usage: "print sums of the `NUMBER` of resources with the most of --by, over the range or in each --step",
		},
		{
			// Without sums there is nothing to sort, so --by needs one of the flags that produce sums.
			Name: "by", Value: flags.Parsed(&o.By, "pass", logquery.ParseBy).Suggest(by...),
			Needs: []string{"top|step|summary"},
			Usage: "`COLUMN` for --top and for the busiest second: " + strings.Join(by, ", "),
		},
	}
}

// sourceFlags returns the flags that select rows of the log, for all commands that read it. Package logquery checks and
// parses their texts. several describes the meaning of several directories, for the usage of --dir. A command that
// reads one directory passes an empty text.
func sourceFlags(o *logquery.Source, several string) flags.Set {
	// Each command explains several directories differently: hosts of an incident, or lines of a report.
	usage := "`DIRECTORY` of the log (required)"
	if several != "" {
		usage += "; repeatable, " + several
	}
	return flags.Set{
		{
			Name: "dir", Value: flags.Strings(&o.Dirs), Zero: true, // package logquery reports an empty directory
			Usage: usage,
		},
		{
			// Commands that need one application report an error if the directory has several and --app is absent.
			Name: "app", Value: flags.String(&o.App, ""),
			Usage: "`NAME` of the application, if the directory has several",
		},
		{
			// A file has the process id in its name only if the service was configured to write it. Several processes
			// can then share a directory.
			Name: "pid", Value: flags.List(&o.PIDs, flags.Int),
			Usage: "`NUMBER` of a process, if names of files have it (default: all); repeatable",
		},
		{
			// The text is parsed later by package logquery, because its meaning depends on --zone and --to.
			Name: "from", Value: flags.String(&o.From, ""),
			Usage: "`TIME` of the first second (default: 15 minutes before --to)",
		},
		{Name: "to", Value: flags.String(&o.To, ""), Usage: "`TIME` of the last second (default: now)"},
		{
			// Times in flags and in the output have the same zone, so a user can copy printed times into --from and
			// --to.
			Name: "zone", Value: flags.Parsed(&o.Zone, "local", wallclock.Zone),
			Usage: "`ZONE` of times in flags and output: local, UTC, or a name such as Europe/Berlin",
		},
		{
			// Several patterns are alternatives: a row must match one of them.
			Name: "resource", Value: flags.List(&o.Resources, logquery.ParsePattern), Zero: true,
			Usage: "`RESOURCE` to select (default: all): " + logquery.PatternHelp + "; repeatable",
		},
	}
}
