package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/flags"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/incident"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/logquery"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/verify"
	"github.com/windowstat/windowstat/internal/atomicfile"
)

// reportCommand is windowstat report. It writes the answers of windowstat log --onset, with charts, to a file.
func reportCommand() *cli.Command {
	asked := question{onset: true, most: incident.MaxRange}
	var source logquery.Source
	var out string
	var r incident.Report
	var database verify.Options
	needs := []string{"url"}
	set := append(sourceFlags(&source, "repeatable, one for each host"), flags.Set{
		{Name: "o", Value: flags.String(&out, ""), Usage: "`FILE` to write (required)"},
		{Name: "title", Value: flags.String(&r.Title, "Incident"), Usage: "`TITLE` of the page"},
		{
			Name: "backtest", Value: flags.List(&asked.limits, incident.ParseLimit),
			Usage: "`LIMIT` to draw in the charts and to test: " + incident.LimitHelp + "; repeatable",
		},
		clockOffset(&asked),
		{
			Name: "url", Value: flags.String(&database.URL, ""), Of: "URL",
			Usage: "`URL` of a query API, without /api/v1, of a database with the alerts",
		},
		{
			Name: "label", Value: flags.Map(&database.Labels), Of: "Labels", Needs: needs,
			Usage: "`NAME=VALUE` of a label that an alert must have; repeatable",
		},
		{
			Name: "config.file", Value: flags.Parsed(&database.Client, "", flags.ParseClient), Needs: needs,
			Usage: flags.ClientUsage,
		},
		{
			Name: "timeout", Value: flags.Number(&database.Timeout, verify.DefaultTimeout), Of: "Timeout", Needs: needs,
			Usage: "maximum `DURATION` of a request",
		},
	}...)
	return set.Command(&cli.Command{
		Name:  "report",
		Usage: "write one HTML file about an incident from the metric log",
		Description: `The file has the seconds from --from to --to and the ten minutes before, in the charts of the
live page. Above them it lists the resources that changed first (see --onset in windowstat log --help), the blocked
calls, the calls that the limits of --backtest would have refused, and with --url the alerts that fired. A browser
needs no network to show it. The file has at most about two megabytes: if there are many resources, it shows those
with the most errors and delays.

Exit status 1 means that a file could not be read or written, 2 that the arguments are wrong. In both cases no file is
written.`,
		Action: func(c *cli.Context) error {
			var errs []error
			if out == "" {
				errs = append(errs, errors.New("-o: the file to write is needed"))
			}
			for _, e := range collector.OptionErrors(database.Check("")) {
				if database.URL != "" && (e.Field != "Labels" || len(database.Labels) > 0) {
					errs = append(errs, e)
				}
			}
			s, err := asked.read(c, set, source, errors.Join(errs...))
			if err != nil {
				return err
			}
			r.Answers, r.Limits = asked.answers(s), asked.limits
			if database.URL != "" {
				r.Alerts, err = verify.Alerts(c.Context, database, time.Unix(s.From, 0), time.Unix(s.To, 0))
				if err != nil {
					return err
				}
			}
			var b bytes.Buffer
			if err := r.Write(&b, s); err != nil {
				return err
			}
			// An existing report stays until the new one is complete.
			if err := atomicfile.Write(out, b.Bytes()); err != nil {
				return err
			}
			fmt.Fprintf(c.App.Writer, "%s: %d bytes; resources that left what they were: %d\n",
				out, b.Len(), len(r.Answers.Onsets))
			return nil
		},
	})
}

// question has the questions of windowstat log and windowstat report about an incident. They concern the same range of
// each directory. Each directory is the log of a host.
type question struct {
	onset  bool
	limits []collector.Limit
	offset time.Duration
	most   time.Duration // longest range; 0 for no limit
}

func clockOffset(q *question, needs ...string) flags.Flag {
	return flags.Flag{
		Name: "clock-offset", Value: flags.Number(&q.offset, 50*time.Millisecond), Zero: true, Needs: needs,
		Usage: "maximum `DURATION` between the clocks of different --dir",
	}
}

// read selects rows in each directory, and reads them. check is the error of other options.
func (q *question) read(
	c *cli.Context, set flags.Set, source logquery.Source, check error,
) (*incident.Seconds, error) {
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
	return incident.Read(c.Context, all, c.App.ErrWriter)
}

// answers evaluates the seconds.
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
func (q *question) answer(c *cli.Context, set flags.Set, o *logquery.Options) error {
	formats := map[string]func(*incident.Answers, io.Writer) error{
		"table": (*incident.Answers).WriteTable, "json": (*incident.Answers).WriteJSON,
	}
	write := formats[cmp.Or(o.Output, "table")]
	var check error
	if write == nil {
		check = fmt.Errorf("--format: %q is not one of json, table, the formats of --onset and --backtest", o.Output)
	}
	s, err := q.read(c, set, o.Source, check)
	if err != nil {
		return err
	}
	return write(q.answers(s), c.App.Writer)
}
