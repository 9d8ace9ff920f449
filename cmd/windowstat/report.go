package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/flags"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/incident"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/logquery"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/verify"
	"github.com/windowstat/windowstat/internal/atomicfile"
)

// reportCommand is windowstat report: what windowstat log --onset says, with charts, in a file that can be sent to somebody.
func reportCommand() *cli.Command {
	asked := question{onset: true, most: incident.MaxRange}
	var source logquery.Source
	var out string
	var r incident.Report
	var database verify.Options
	needs := []string{"url"}
	set := append(sourceFlags(&source, "repeatable, one for each host"), flags.Set{
		{Flag: &cli.StringFlag{Name: "o", Destination: &out, Usage: "`FILE` to write (required)"}},
		{Flag: &cli.StringFlag{Name: "title", Value: "Incident", Destination: &r.Title, Usage: "`TITLE` of the page"}},
		{Flag: &cli.GenericFlag{Name: "backtest", Value: flags.Values(&asked.limits, incident.ParseLimit), Usage: "`LIMIT` to draw in the charts, and to try: " + incident.LimitHelp + "; repeatable"}},
		{Zero: true, Flag: clockOffset(&asked)},
		{Of: "URL", Flag: &cli.StringFlag{Name: "url", Destination: &database.URL, Usage: "`URL` of a query API, without /api/v1, that knows which alerts fired"}},
		{Of: "Labels", Needs: needs, Flag: &cli.StringMapFlag{Name: "label", Destination: &database.Labels, Usage: "`NAME=VALUE` of a label that an alert must have; repeatable"}},
		{Needs: needs, Flag: &cli.GenericFlag{Name: "config.file", Value: flags.Value(&database.Client, "", flags.ParseClient), Usage: flags.ClientUsage}},
		{Of: "Timeout", Needs: needs, Flag: &cli.DurationFlag{Name: "timeout", Value: verify.DefaultTimeout, Destination: &database.Timeout, Usage: "`DURATION` that a request may take"}},
	}...)
	return &cli.Command{
		Name:  "report",
		Usage: "write what the metric log has of an incident into one file, for a browser without a network",
		Description: `The file has the seconds from --from to --to and the ten minutes before, as the live page draws them, and above them which
resources left what they were first (see windowstat log --help, --onset), what was refused, what the limits of --backtest would have
refused, and with --url which alerts fired. It is at most some two megabytes: of many resources those with most trouble are shown.

Exit status 1 means that something could not be read or written, 2 that the arguments are wrong; no file is written then.`,
		Flags: set.Flags(),
		Action: func(ctx context.Context, c *cli.Command) error {
			var errs []error
			if out == "" {
				errs = append(errs, errors.New("-o: the file to write is needed"))
			}
			for _, e := range collector.OptionErrors(database.Check("")) {
				if database.URL != "" && (e.Field != "Labels" || len(database.Labels) > 0) {
					errs = append(errs, e)
				}
			}
			s, err := asked.read(ctx, c, set, source, errors.Join(errs...))
			if err != nil {
				return err
			}
			r.Answers, r.Limits = asked.answers(s), asked.limits
			if database.URL != "" {
				if r.Alerts, err = verify.Alerts(ctx, database, time.Unix(s.From, 0), time.Unix(s.To, 0)); err != nil {
					return err
				}
			}
			var b bytes.Buffer
			if err := r.Write(&b, s); err != nil {
				return err
			}
			// A report that was there before stays until this one is whole.
			if err := atomicfile.Write(out, b.Bytes()); err != nil {
				return err
			}
			fmt.Fprintf(c.Root().Writer, "%s: %d bytes; resources that left what they were: %d\n", out, b.Len(), len(r.Answers.Onsets))
			return nil
		},
	}
}

// question is what windowstat log and windowstat report ask of an incident: of each directory the same range, as each is the log of a host.
type question struct {
	onset  bool
	limits []collector.Limit
	offset time.Duration
	most   time.Duration // of the range; 0 is no limit
}

func clockOffset(q *question) cli.Flag {
	return &cli.DurationFlag{Name: "clock-offset", Value: 50 * time.Millisecond, Destination: &q.offset, Usage: "`DURATION` by which clocks of different --dir may differ"}
}

// read selects rows in each directory, and reads them. The check is of further options.
func (q *question) read(ctx context.Context, c *cli.Command, set flags.Set, source logquery.Source, check error) (*incident.Seconds, error) {
	errs := []error{check}
	if q.offset < 0 {
		errs = append(errs, fmt.Errorf("--clock-offset: %v is negative", q.offset))
	}
	all, err := logquery.Select(source, time.Now())
	errs = append(errs, err)
	if q.most > 0 && all[0].To.Sub(all[0].From) >= q.most {
		errs = append(errs, fmt.Errorf("--from: more than %v before --to", q.most))
	}
	if err := set.Check(c, errors.Join(errs...)); err != nil {
		return nil, err
	}
	return incident.Read(ctx, all, c.Root().ErrWriter)
}

// answers returns what the seconds say.
func (q *question) answers(s *incident.Seconds) *incident.Answers {
	a := &incident.Answers{Notes: s.Notes(q.onset)}
	if q.onset {
		a.Onsets = s.Onsets(q.offset)
	}
	for _, l := range q.limits {
		found := s.Backtest(l)
		if a.Trials = append(a.Trials, found...); len(found) == 0 {
			a.Notes = append(a.Notes, fmt.Sprintf("the log has no resource for the limit %s", l))
		}
	}
	return a
}

// answer prints the answers for windowstat log.
func (q *question) answer(ctx context.Context, c *cli.Command, set flags.Set, o *logquery.Options) error {
	write := map[string]func(*incident.Answers, io.Writer) error{"table": (*incident.Answers).WriteTable, "json": (*incident.Answers).WriteJSON}[cmp.Or(o.Output, "table")]
	var check error
	if write == nil {
		check = fmt.Errorf("--format: %q is not one of json, table, which --onset and --backtest have", o.Output)
	}
	s, err := q.read(ctx, c, set, o.Source, check)
	if err != nil {
		return err
	}
	return write(q.answers(s), c.Root().Writer)
}
