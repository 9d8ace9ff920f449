package main

import (
	"context"
	"errors"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/flags"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/incident"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/logquery"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/wallclock"
)

// logCommand is windowstat log. Package logquery searches and prints rows. With --onset or --backtest the same flags choose the rows, and
// package incident says what they mean; it is one command because the question comes up while somebody reads the log.
func logCommand() *cli.Command {
	var o logquery.Options
	var asked question
	follow := []string{"follow"} // which does not end
	rows := []string{"follow", "where", "summary", "step", "top", "n"}
	set := append(sourceFlags(&o.Source, "repeatable with --onset and --backtest, one for each host"), flags.Set{
		{Flag: &cli.BoolFlag{Name: "follow", Destination: &o.Source.Follow, Usage: "print rows as they are logged, from --from or now on, until interrupted"}, Not: []string{"to"}},
		{Flag: &cli.GenericFlag{Name: "format", Value: flags.OneOf(&o.Output, "table", logquery.Formats()...), Usage: "`FORMAT`: " + strings.Join(logquery.Formats(), ", ")}},
		{Zero: true, Flag: &cli.GenericFlag{Name: "where", Value: flags.Values(&o.Where, logquery.ParseCondition), Usage: "`CONDITION` that a row must meet, such as block>0; repeatable, and all must be met"}},
		{Not: follow, Flag: &cli.BoolFlag{Name: "summary", Destination: &o.Summary, Usage: "print sums over the range, for each resource, in the place of rows"}},
		{Not: []string{"follow", "summary"}, Flag: &cli.DurationFlag{Name: "step", Destination: &o.Step, Usage: "print sums for each `DURATION`, such as 1m, in the place of rows"}},
		{Not: follow, Flag: &cli.IntFlag{Name: "top", Destination: &o.Top, Usage: "print sums for the `NUMBER` of resources with most of --by, over the range or in each --step"}},
		{Needs: []string{"top|step|summary"}, Flag: &cli.GenericFlag{Name: "by", Value: flags.Value(&o.By, "pass", logquery.ParseBy), Usage: "`COLUMN` for --top and for the busiest second: " + logquery.ColumnNames(true)}},
		{Not: rows, Flag: &cli.BoolFlag{Name: "onset", Destination: &asked.onset, Usage: "print which resources left what they were in the ten minutes before --from, the first one first"}},
		{Not: rows, Flag: &cli.GenericFlag{Name: "backtest", Value: flags.Values(&asked.limits, incident.ParseLimit), Usage: "print what a `LIMIT` would have refused: " + incident.LimitHelp + "; repeatable"}},
		{Needs: []string{"onset"}, Zero: true, Flag: clockOffset(&asked)},
		{Not: follow, Flag: &cli.IntFlag{Name: "n", Destination: &o.Tail, Usage: "print only the last `NUMBER` of rows, as tail -n does"}},
	}...)
	return &cli.Command{
		Name:  "log",
		Usage: "search the metric log, and convert it",
		Description: `The rows from --from to --to, both included, are printed: those of the last 15 minutes if there is neither. A time is one of
  ` + logquery.TimeHelp + `.
Times without an offset are those of --zone, and those without a date are today's.

A day, such as yesterday or 2026-01-02, is all of it: its first second in --from, and its last one in --to.

A resource is given by ` + logquery.PatternHelp + `.
A condition of --where is ` + logquery.WhereHelp + `.
The columns are ` + logquery.ColumnNames(false) + `. It chooses among the rows of single seconds, before they are added up.

Formats of rows: table is for reading, with unprintable characters in names escaped. json is a line for each row, with the
names of the per-second metrics. csv has a header; names that a spreadsheet would calculate begin with an apostrophe there.
sentinel is the lines of the log, byte for byte, without regard to --zone. The last row of a second is all inbound traffic,
__total_inbound_traffic__; leave it out of sums.

--step, --top and --summary add rows up, by application and resource: in each step, or in one over the range. Steps are counted
from midnight in --zone; the first and the last may be cut by --from and --to. Counts are sums; in_flight_max is the highest of
a second in one process; rt_avg is the average of all calls, at most 1ms too low, as the log has whole milliseconds. Quantiles do
not add up, so there are none. peak and its time are the busiest second, the first if several are: that with most of the column
--by. --top leaves out __total_inbound_traffic__.
The table of one step over the range has rates, shares and the second with the worst average response time in the place of the
columns that do not add up.

--onset compares the passes, refusals, exceptions, average response time and calls in flight of each resource with what they were in
the ten minutes before --from. A number has left in the second from which four of five seconds are all above or all below the median,
three times as far as any four of five were before, and by more than half of it, four calls or 5ms. Onsets in one second, or of
different directories within --clock-offset of that, are tied: they have an = behind their rank.

--backtest says what a limit would have refused at least. The log has calendar seconds, and the limit's window slides.

windowstat verify compares a database with the log, and fills its gaps.

Exit status 1 means that something could not be read or written, 2 that the arguments are wrong.`,
		Flags: set.Flags(),
		Action: func(ctx context.Context, c *cli.Command) error {
			if asked.onset || len(asked.limits) > 0 {
				return asked.answer(ctx, c, set, &o)
			}
			q, err := logquery.New(o, time.Now(), c.Root().ErrWriter)
			if err := set.Check(c, err); err != nil {
				return err
			}
			// With head or less behind a pipe, writing fails when somebody has read enough. That is the end, and neither an error nor a
			// signal that ends the program.
			signal.Ignore(syscall.SIGPIPE)
			if err = q.Run(ctx, c.Root().Writer); errors.Is(err, syscall.EPIPE) {
				return nil
			}
			return err
		},
	}
}

// sourceFlags are the flags of commands that read the log, which say what several directories are for.
func sourceFlags(o *logquery.Source, several string) flags.Set {
	return flags.Set{
		{Flag: &cli.StringSliceFlag{Name: "dir", Destination: &o.Dirs, Usage: "`DIRECTORY` of the log (required); " + several}},
		{Flag: &cli.StringFlag{Name: "app", Destination: &o.App, Usage: "`NAME` of the application, if the directory has several"}},
		{Flag: &cli.IntSliceFlag{Name: "pid", Destination: &o.PIDs, Usage: "`NUMBER` of a process, where it is in the files' names; all by default; repeatable"}},
		{Flag: &cli.StringFlag{Name: "from", Destination: &o.From, Usage: "`TIME` of the first second; by default 15 minutes before --to"}},
		{Flag: &cli.StringFlag{Name: "to", Destination: &o.To, Usage: "`TIME` of the last second (default: now)"}},
		{Flag: &cli.GenericFlag{Name: "zone", Value: flags.Value(&o.Zone, "local", wallclock.Zone), Usage: "`ZONE` of times that are given and printed: local, UTC, or a name such as Europe/Berlin"}},
		{Zero: true, Flag: &cli.GenericFlag{Name: "resource", Value: flags.Values(&o.Resources, logquery.ParsePattern), Usage: "`RESOURCE` that is wanted: " + logquery.PatternHelp + "; all by default; repeatable"}},
	}
}
