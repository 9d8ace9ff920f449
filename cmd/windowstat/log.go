package main

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/logquery"
)

func logCommand() *cli.Command {
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

windowstat verify compares a database with the log, and fills its gaps.

Exit status 1 means that something could not be read or written, 2 that the arguments are wrong.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "dir", Usage: "`DIRECTORY` of the log (required)"},
			&cli.StringFlag{Name: "app", Usage: "`NAME` of the application; all in the directory by default"},
			&cli.IntSliceFlag{Name: "pid", Usage: "`NUMBER` of a process, where it is in the files' names; all by default; repeatable"},
			&cli.StringFlag{Name: "from", Usage: "`TIME` of the first second; by default 15 minutes before --to, and with --follow now"},
			&cli.StringFlag{Name: "to", Usage: "`TIME` of the last second (default: now)"},
			&cli.StringFlag{Name: "zone", Value: "local", Usage: "`ZONE` of times that are given and printed: local, UTC, or a name such as Europe/Berlin"},
			&cli.StringSliceFlag{Name: "resource", Usage: "`RESOURCE` that is wanted, see above; all by default; repeatable"},
			&cli.StringFlag{Name: "format", Value: "table", Usage: "`FORMAT`: " + strings.Join(logquery.Formats(), ", ")},
			&cli.BoolFlag{Name: "follow", Usage: "go on with new rows, of all processes, until interrupted"},
			&cli.BoolFlag{Name: "summary", Usage: "print sums over the range, for each resource, in the place of rows"},
			&cli.StringSliceFlag{Name: "where", Usage: "`CONDITION` that a row must meet, such as block>0; repeatable, and all must be met"},
			&cli.DurationFlag{Name: "step", Usage: "print sums for each `DURATION`, such as 1m, in the place of rows"},
			&cli.IntFlag{Name: "top", Usage: "print sums for the `NUMBER` of resources with most of --by, over the range or in each --step"},
			&cli.StringFlag{Name: "by", Value: "pass", Usage: "`COLUMN` for --top and for the busiest second: " + logquery.ColumnNames(true)},
			&cli.IntFlag{Name: "n", Usage: "print only the last `NUMBER` of rows, as tail -n does"},
		},
		Action: func(c *cli.Context) error {
			o, err := logOptions(c)
			errs := []error{err}
			q, err := logquery.New(o, time.Now(), c.App.ErrWriter)
			errs = append(errs, err)
			if err := errors.Join(errs...); err != nil {
				return usage(err)
			}
			signal.Ignore(syscall.SIGPIPE) // writing fails then, and does not end the program
			switch err = q.Run(c.Context, c.App.Writer); {
			case errors.Is(err, syscall.EPIPE): // somebody has read enough
				return nil
			case errors.Is(err, context.Canceled):
				return errors.New(strings.ReplaceAll(err.Error(), context.Canceled.Error(), "interrupted"))
			}
			return err
		},
	}
}

// logOptions reads the flags.
func logOptions(c *cli.Context) (logquery.Options, error) {
	from, err := source(c)
	errs := flagErrors{noArguments(c), err}
	o := logquery.Options{
		Source: from, Where: c.StringSlice("where"), Step: c.Duration("step"), Top: c.Int("top"), Summary: c.Bool("summary"),
		Tail: c.Int("n"), Output: c.String("format"),
	}
	o.Source.Follow = c.Bool("follow")
	for _, flag := range []string{"step", "top", "n"} {
		if c.IsSet(flag) && (c.Value(flag) == 0 || c.Value(flag) == time.Duration(0)) {
			errs.add(flag, fmt.Errorf("%v is none; leave it out", c.Value(flag)))
		}
	}
	if c.IsSet("by") {
		if o.By = c.String("by"); o.Step == 0 && o.Top == 0 && !o.Summary {
			errs.add("by", errors.New("needs --top, --step or --summary"))
		}
	}
	return o, errors.Join(errs...)
}

// source reads the flags of commands that read the log: dir, app, pid, from, to, zone and resource.
func source(c *cli.Context) (logquery.Source, error) {
	var errs flagErrors
	for _, flag := range []string{"from", "to", "zone"} {
		if c.IsSet(flag) && c.String(flag) == "" {
			errs.add(flag, errors.New("is empty; leave it out for the default"))
		}
	}
	dir := c.String("dir")
	if dirs := c.StringSlice("dir"); len(dirs) > 0 {
		dir = dirs[0]
	}
	return logquery.Source{
		Dir: dir, App: c.String("app"), PIDs: c.IntSlice("pid"),
		From: c.String("from"), To: c.String("to"), Zone: c.String("zone"), Resources: c.StringSlice("resource"),
	}, errors.Join(errs...)
}
