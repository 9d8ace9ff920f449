package main

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/flags"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/incident"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/logquery"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/verify"
	"github.com/windowstat/windowstat/internal/atomicfile"
)

// reportCommand is windowstat report. It writes the findings of windowstat onset and windowstat backtest to an HTML
// file with charts. With --url, the file also has the alerts of a database.
//
// The command cannot share analysis.command with onset and backtest, because it has other flags and another output. It
// calls analysis.read and analysis.answers directly.
func reportCommand() *cli.Command {
	a := analysis{onset: true, maxRange: incident.MaxRange}
	var source logquery.Source
	var out string
	var r incident.Report
	// The options of a comparison also have the URL, the labels and the client that a query of alerts needs.
	var database verify.Options
	// The flags of the database have no effect without its URL.
	needs := []string{"url"}
	set := append(sourceFlags(&source, hosts), flags.Set{
		// The name has one letter, as in compilers, so messages write it with one dash.
		{Name: "o", Value: flags.String(&out, ""), Usage: "`FILE` to write (required)"},
		{
			// The flag is named after the command whose result it adds. In windowstat backtest, the same option is
			// --limit.
			Name: "backtest", Value: flags.List(&a.limits, incident.ParseLimit),
			Usage: "`LIMIT` to draw in the charts and to test: " + incident.LimitHelp + "; repeatable",
		},
		a.clockOffset(),
		{
			// Without a database, the report is complete except for the alerts: everything else is from the log.
			Name: "url", Value: flags.String(&database.URL, ""), Of: "URL",
			Usage: "`URL` of a query API, without /api/v1, of a database with the alerts",
		},
		{
			// A database has the alerts of many services. The labels select the alerts of one service.
			Name: "label", Value: flags.Map(&database.Labels), Of: "Labels", Needs: needs,
			Usage: "`NAME=VALUE` of a label that an alert must have; repeatable",
		},
		{
			Name: "config.file", Value: flags.Parsed(&database.Client, "", flags.ParseClient), Needs: needs,
			Usage: flags.ClientUsage,
		},
	}...)
	return set.Command(&cli.Command{
		Name:  "report",
		Usage: "write one HTML file about an incident from the metric log",
		Description: `The file has the seconds from --from to --to and the ten minutes before, in the charts of the
live page. Above them it lists the resources that changed first (see windowstat onset --help), the blocked calls, the
calls that the limits of --backtest would have refused, and with --url the alerts that fired. A browser needs no network
to show it. The file has at most about two megabytes: if there are many resources, it shows those that changed first,
and then those with the most blocked and failed calls.

Exit status 1 means that a file could not be read or written, 2 that the arguments are wrong. In both cases no file is
written.`,
		Action: func(c *cli.Context) error {
			// Without --url the options of the database are not used, so their errors are omitted. Labels are optional
			// here, unlike in windowstat verify, so an error about absent labels is omitted, too.
			var errs []error
			// A required flag of the library would report only this error. The method read reports all errors together.
			if out == "" {
				errs = append(errs, errors.New("-o: a file to write is needed"))
			}
			for _, e := range collector.OptionErrors(database.Check("")) {
				if database.URL != "" && (e.Field != "Labels" || len(database.Labels) > 0) {
					errs = append(errs, e)
				}
			}
			s, err := a.read(c, set, source, errors.Join(errs...))
			if err != nil {
				return err
			}
			r.Answers, r.Limits = a.answers(s), a.limits
			if database.URL != "" {
				// The alerts are queried after the log was read: an error in the range is found without a request.
				r.Alerts, err = verify.Alerts(c.Context, database, time.Unix(s.From, 0), time.Unix(s.To, 0))
				if err != nil {
					return err
				}
			}
			r.Title = "Incident of " + time.Unix(s.From, 0).In(s.Zone).Format(logquery.TimeLayout)
			// A report has at most about two megabytes, so it fits into memory.
			var b bytes.Buffer
			if err := r.Write(&b, s); err != nil {
				return err
			}
			// Write to a temporary file first, and keep an existing report if a write fails.
			if err := atomicfile.Write(out, b.Bytes()); err != nil {
				return err
			}
			// The numbers show whether the report has the expected content, and the user need not open it.
			fmt.Fprintf(c.App.Writer, "%s: %d bytes; resources that changed: %d\n",
				out, b.Len(), len(r.Answers.Onsets))
			return nil
		},
	})
}
