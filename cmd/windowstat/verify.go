package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/logquery"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/backfill"
	"github.com/windowstat/windowstat/exporter/push"
	"github.com/windowstat/windowstat/exporter/verify"
)

func verifyCommand() *cli.Command {
	return &cli.Command{
		Name:  "verify",
		Usage: "compare a database with the metric log, and write what is missing",
		Description: `The seconds from --from to --to, both included, are read from the database by the query API of Prometheus, which
VictoriaMetrics, Thanos and Mimir have, too, and compared with the metric log, value by value: those of the last 15 minutes if there
is neither. A time is one of
  ` + logquery.TimeHelp + `.

The labels select the series of one instance:
  windowstat verify --dir DIR --from -6h --url http://prometheus:9090 --label job=shop-seconds --label instance=shop:9719

--heal writes the samples that are missing, and no others, by remote write, and compares again. The server must accept samples out
of order: VictoriaMetrics does, and Prometheus within its out_of_order_time_window. For others the report has the commands that make
blocks. Samples with other values, and those that the log does not have, stay.

Compared are the metrics that the log has exactly: histograms, response times and sampled series are not in it. A resource that was
idle in a second has no row; the database need not have its zero.

Exit status 0 means that the database is right, 1 that something is missing, different or too much, or could not be read, 2 that the
arguments are wrong.`,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "dir", Usage: "`DIRECTORY` of the log (required)"},
			&cli.StringFlag{Name: "app", Usage: "`NAME` of the application, if the directory has several"},
			&cli.IntSliceFlag{Name: "pid", Usage: "`NUMBER` of a process, where it is in the files' names; all by default; repeatable"},
			&cli.StringFlag{Name: "from", Usage: "`TIME` of the first second; by default 15 minutes before --to"},
			&cli.StringFlag{Name: "to", Usage: "`TIME` of the last second (default: now)"},
			&cli.StringFlag{Name: "zone", Value: "local", Usage: "`ZONE` of times that are given and printed: local, UTC, or a name such as Europe/Berlin"},
			&cli.StringSliceFlag{Name: "resource", Usage: "`RESOURCE` to compare: " + logquery.PatternHelp + "; all by default; repeatable"},
			&cli.StringSliceFlag{Name: "metric", Usage: "full `NAME` of a metric to compare; by default those that the database has of the instance; repeatable"},
			&cli.StringFlag{Name: "url", Usage: "`URL` of the query API, without /api/v1 (required)"},
			&cli.StringSliceFlag{Name: "label", Usage: "`NAME=VALUE` of a label that the instance's series have, such as job and instance (required); repeatable"},
			&cli.StringFlag{Name: "namespace", Value: exporter.Namespace, Usage: "`PREFIX` of the metrics' names"},
			&cli.StringFlag{Name: "config.file", Usage: "`FILE` with authorization, TLS and headers, in Prometheus's HTTP client configuration format"},
			&cli.DurationFlag{Name: "timeout", Value: verify.DefaultTimeout, Usage: "`DURATION` that a request may take"},
			&cli.DurationFlag{Name: "delay", Value: verify.DefaultDelay, Usage: "`DURATION` within which a second may still arrive; younger ones are not compared"},
			&cli.StringFlag{Name: "format", Value: "table", Usage: "`FORMAT` of the report: table or json"},
			&cli.BoolFlag{Name: "heal", Usage: "write what is missing by remote write, and compare again"},
			&cli.StringFlag{Name: "remote-write", Usage: "`URL` to write to, with --heal (default: --url and /api/v1/write)"},
			&cli.StringFlag{Name: "remote-write.config.file", Usage: "`FILE` for it, as --config.file, which is used without --remote-write"},
			&cli.IntFlag{Name: "rate", Value: verify.DefaultRate, Usage: "how many samples --heal writes in a second at most"},
		},
		Action: func(c *cli.Context) error {
			v, err := newVerification(c, time.Now())
			if err != nil {
				return usage(err)
			}
			return v.run(c.Context, c.App.Writer)
		},
	}
}

// verification is what is compared, and with what.
type verification struct {
	*logquery.Selection
	gap   backfill.Gap
	from  verify.Options
	heal  bool
	to    push.Options
	rate  int
	json  bool
	after time.Duration // between two looks after healing

	stderr io.Writer
}

func newVerification(c *cli.Context, now time.Time) (*verification, error) {
	v := &verification{heal: c.Bool("heal"), rate: c.Int("rate"), json: c.String("format") == "json", after: time.Second}
	v.stderr = c.App.ErrWriter
	errs := []error{noArguments(c)}
	add := func(err error) { errs = append(errs, err) }
	o, err := source(c)
	add(err)
	o.OneApp = true
	v.Selection, err = logquery.Select(o, now)
	add(err)
	if f := c.String("format"); f != "table" && f != "json" {
		add(fmt.Errorf("--format: %q is not one of table, json", f))
	}
	v.from = verify.Options{URL: c.String("url"), Metrics: c.StringSlice("metric"), Timeout: c.Duration("timeout"), Delay: c.Duration("delay")}
	v.from.Labels, err = parseLabels("label", c.StringSlice("label"))
	add(err)
	v.from.Client, err = parseClient("config.file", c.String("config.file"))
	add(err)
	v.gap = backfill.Gap{
		Searcher: v.Searcher, PIDs: v.PIDs, From: v.From, To: v.To, Match: v.Match, Namespace: c.String("namespace"),
	}
	add(verifyFlags("", v.from.Check(v.gap.Namespace)))
	for _, flag := range []string{"timeout", "delay", "rate"} {
		if fmt.Sprint(c.Value(flag)) == "0" || c.Value(flag) == time.Duration(0) {
			add(fmt.Errorf("--%s: 0 is none; leave it out for the default", flag))
		}
	}
	for _, flag := range []string{"remote-write", "remote-write.config.file", "rate"} {
		if c.IsSet(flag) && !v.heal {
			add(fmt.Errorf("--%s: needs --heal", flag))
		}
	}
	if c.IsSet("remote-write.config.file") && !c.IsSet("remote-write") {
		add(errors.New("--remote-write.config.file: needs --remote-write; without it --config.file is used"))
	}
	if v.heal {
		add(v.parseHeal(c))
	}
	return v, errors.Join(errs...)
}

func (v *verification) parseHeal(c *cli.Context) (err error) {
	v.to = push.Options{
		URL: strings.TrimSuffix(v.from.URL, "/") + "/api/v1/write", Client: v.from.Client, Timeout: v.from.Timeout,
		Logger: slog.New(slog.NewTextHandler(v.stderr, nil)),
	}
	var errs []error
	if c.IsSet("remote-write") {
		v.to.URL = c.String("remote-write")
		v.to.Client, err = parseClient("remote-write.config.file", c.String("remote-write.config.file"))
		errs = append(errs, err)
	} else if v.from.Check(v.gap.Namespace) != nil {
		return nil // it has been said
	}
	return errors.Join(append(errs, verifyFlags("remote-write", verify.CheckHeal(v.to, v.rate)))...)
}

// verifyFields are the fields of verify.Options that have a flag.
var verifyFields = map[string]string{
	"URL": "url", "Labels": "label", "Metrics": "metric", "Timeout": "timeout", "Delay": "delay", "Namespace": "namespace", "Rate": "rate",
}

// verifyFlags puts flags in the place of fields: flag for all but Rate, if it is not empty.
func verifyFlags(flag string, err error) error {
	var errs []error
	for _, e := range collector.OptionErrors(err) {
		name := verifyFields[e.Field]
		if flag != "" && e.Field != "Rate" {
			name = flag
		}
		errs = append(errs, &flagError{name, e.Err})
	}
	return errors.Join(errs...)
}

// run compares, and heals if that is wanted.
func (v *verification) run(ctx context.Context, stdout io.Writer) error {
	if !v.heal {
		report, err := verify.Check(ctx, v.gap, v.from)
		return v.end(stdout, report, nil, err)
	}
	report, result, err := verify.Heal(ctx, v.gap, v.from, v.to, v.rate)
	if err != nil || result == (backfill.WriteResult{}) {
		return v.end(stdout, report, &result, err)
	}
	if !v.json {
		v.print(stdout, report, nil)
		fmt.Fprintf(stdout, "\nhealed: %s\n\n", healed(result))
	}
	v.gap.From, v.gap.To = report.From, report.To // and not what is old enough meanwhile
	const looks = 30                              // a database may need a moment to show what was written, VictoriaMetrics ten seconds if the series was deleted
	for range looks {
		if report, err = verify.Check(ctx, v.gap, v.from); err != nil || report.Missing == 0 || result.Written == 0 {
			break
		}
		select {
		case <-ctx.Done():
		case <-time.After(v.after):
		}
	}
	return v.end(stdout, report, &result, err)
}

func healed(r backfill.WriteResult) string {
	return fmt.Sprintf("%d samples were written, %d refused, %d unconfirmed, %d not sent", r.Written, r.Refused, r.Unconfirmed, r.Left)
}

// end prints the last report, and returns what decides the exit status.
func (v *verification) end(stdout io.Writer, report verify.Report, result *backfill.WriteResult, err error) error {
	if v.json {
		out := struct {
			verify.Report
			Healed *backfill.WriteResult `json:"healed,omitempty"`
		}{report, result}
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		err = errors.Join(err, e.Encode(out))
	} else {
		v.print(stdout, report, err)
		if report.Missing > 0 {
			v.advise(stdout, report, result)
		}
	}
	switch {
	case err != nil:
		return err
	case report.From.After(report.To):
		return errors.New("no second was compared")
	case !report.Clean():
		return errors.New("the database is not what the log is")
	}
	return nil
}
