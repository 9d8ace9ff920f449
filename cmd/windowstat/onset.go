package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/flags"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/incident"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/logquery"
	"github.com/windowstat/windowstat/collector"
)

// hosts is the usage of several directories in commands about an incident.
const hosts = "one for each host"

// onsetCommand is windowstat onset. Package incident finds the changes. The text of --help states the rule in short;
// incident/onset.go has the numbers.
//
// The command answers the first question in an incident: which resource changed first. The consequences follow later,
// so the earliest change is often next to the cause.
func onsetCommand() *cli.Command {
	a := analysis{onset: true}
	return a.command(&cli.Command{
		Name:  "onset",
		Usage: "print the resources that changed first in an incident",
		Description: `Compares the passes, blocks, exceptions, average response time and calls in flight of each
resource, from --from to --to, with the ten minutes before --from. It prints the resources that changed, the earliest
first, and for each number the median before and after.

An onset is the first second from which four of five seconds are all above or all below the median. Their distance
from it is more than three times that of any four of five seconds before, more than half of the median, and more than
four calls or 5ms. Bursts of up to three seconds are not onsets. Onsets in the same second are tied, as are onsets of
different directories within --clock-offset. A tied onset has an = after its rank.

` + rangeHelp,
	}, a.clockOffset())
}

// backtestCommand is windowstat backtest. Package incident applies the limits to the rows of the log.
//
// The command answers whether a limit would have helped, before the limit is in a production system.
func backtestCommand() *cli.Command {
	// The zero value finds no onsets and has no maximum range, because a backtest may cover many days.
	var a analysis
	return a.command(&cli.Command{
		Name:  "backtest",
		Usage: "print the calls that a limit would have refused",
		Description: `Applies the limits to the seconds of the log from --from to --to. For each limit and resource
it prints the calls, the blocked calls, the calls that the limit would have refused at least, and the seconds of these.
The number is a lower bound, because the log has calendar seconds, and the window of the limit slides.

` + rangeHelp,
	}, flags.Flag{
		Name: "limit", Value: flags.List(&a.limits, incident.ParseLimit),
		Usage: "`LIMIT` to test (required): " + incident.LimitHelp + "; repeatable",
	})
}

// rangeHelp ends the help of commands about an incident.
const rangeHelp = `Without --from and --to, the range is the last 15 minutes. windowstat log --help explains times and
resources.

Exit status 1 means that a file could not be read, 2 that the arguments are wrong.`

// analysis has the options of the commands onset, backtest and report, and runs their common steps: read selects and
// reads the rows, and answers evaluates them. The rows are from one or more directories, one for each host, and have
// the same range in all of them.
type analysis struct {
	onset  bool              // find onsets
	limits []collector.Limit // limits to test; none without a backtest
	// Onsets of hosts whose clocks differ cannot be ordered within this time.
	offset time.Duration // maximum difference between the clocks of hosts
	// windowstat report sets a maximum, because its charts have each second of the range.
	maxRange time.Duration // 0 for no limit
}

// clockOffset returns the flag --clock-offset. The clocks of two hosts differ by some milliseconds, so two onsets on
// different hosts have an order only if the time between them exceeds a second by this offset.
func (a *analysis) clockOffset() flags.Flag {
	return flags.Flag{
		Name: "clock-offset", Value: flags.Number(&a.offset, 50*time.Millisecond), Zero: true,
		Usage: "maximum `DURATION` between the clocks of different --dir",
	}
}

// command completes the command c: with the flags of the source and the format, with one additional flag, and with an
// action that prints the findings.
func (a *analysis) command(c *cli.Command, own flags.Flag) *cli.Command {
	var source logquery.Source
	var format string
	set := append(sourceFlags(&source, hosts), own, flags.Flag{
		Name: "format", Value: flags.OneOf(&format, "table", "table", "json"),
		Usage: "`FORMAT` of the output: table or json",
	})
	c.Action = func(ctx *cli.Context) error {
		// A backtest without a limit has no result, so windowstat backtest requires --limit. windowstat onset has no
		// such flag.
		var missing error
		if !a.onset && !set.IsSet("limit") {
			missing = errors.New("--limit: a limit is needed")
		}
		s, err := a.read(ctx, set, source, missing)
		if err != nil {
			return err
		}
		// Both formats print the same answers.
		var write func(io.Writer) error
		if answers := a.answers(s); format == "json" {
			write = answers.WriteJSON
		} else {
			write = answers.WriteTable
		}
		return write(ctx.App.Writer)
	}
	return set.Command(c)
}

// read checks all options and reads the selected rows of each directory. check is an error that the caller has found in
// other options, or nil; read reports it together with its own errors.
func (a *analysis) read(
	c *cli.Context, set flags.Set, source logquery.Source, check error,
) (*incident.Seconds, error) {
	errs := []error{check}
	if a.offset < 0 {
		errs = append(errs, fmt.Errorf("--clock-offset: %v is negative", a.offset))
	}
	// Select returns at least one selection, even after an error, so all[0] exists.
	all, err := logquery.Select(source, time.Now())
	errs = append(errs, err)
	// The range includes the second of From and the second of To, so it is one second longer than the difference.
	if a.maxRange > 0 && all[0].To.Sub(all[0].From) >= a.maxRange {
		errs = append(errs, fmt.Errorf("--from: more than %v before --to", a.maxRange))
	}
	// Report all errors before reading the rows, because reading may take seconds.
	if err := set.Check(c, errors.Join(errs...)); err != nil {
		return nil, err
	}
	return incident.Read(c.Context, all, c.App.ErrWriter)
}

// answers evaluates the seconds. A limit without a matching resource is probably misspelled, so it causes a note.
func (a *analysis) answers(s *incident.Seconds) *incident.Answers {
	// A field that stays nil is absent from the output: Onsets for windowstat backtest, and Trials for windowstat
	// onset.
	found := &incident.Answers{Notes: s.Notes(a.onset)}
	if a.onset {
		found.Onsets = s.Onsets(a.offset)
	}
	for _, l := range a.limits {
		// A limit has a result for each resource that it matches, also without a refused call.
		trials := s.Backtest(l)
		if found.Trials = append(found.Trials, trials...); len(trials) == 0 {
			found.Notes = append(found.Notes, fmt.Sprintf("the log has no resource for the limit %s", l))
		}
	}
	return found
}
