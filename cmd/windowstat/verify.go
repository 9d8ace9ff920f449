package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/flags"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/logquery"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
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

The labels select the series of one instance, or of several, of which it is the one that has the last run of the log:
  windowstat verify --dir DIR --from -6h --url http://prometheus:9090 --label job=shop-seconds --label instance=shop:9719

--heal writes the samples that are missing, and no others, by remote write, and compares again. The server must accept samples out
of order: VictoriaMetrics does, and Prometheus within its out_of_order_time_window. With --openmetrics they are written to a file for
promtool, which makes blocks of what is older than three hours. Samples with other values, and those that the log does not have, stay.

Each second has the run of the process that counted it, in the log and in the database. Only seconds of runs that these labels have
are written, and none that other labels have or should have; those are named with the reason. --run decides by hand. --new writes all that the
log has with the labels given, compares nothing, and is for imported logs and empty databases.

Compared are the metrics that the log has exactly: histograms, response times and sampled series are not in it. A resource that was
idle in a second has no row; the database need not have its zero. Resources that the database does not have at all are left out,
unless --all is given.

Exit status 0 means that the database is right, also if other labels have some of it, 1 that something is missing, different or too
much, or could not be read, 2 that the arguments are wrong.`,
		Flags: []cli.Flag{
			&cli.StringSliceFlag{Name: "dir", Usage: "`DIRECTORY` of the log (required); repeatable: each has a line"},
			&cli.StringFlag{Name: "app", Usage: "`NAME` of the application, if the directory has several"},
			&cli.IntSliceFlag{Name: "pid", Usage: "`NUMBER` of a process, where it is in the files' names; all by default; repeatable"},
			&cli.StringFlag{Name: "from", Usage: "`TIME` of the first second; by default 15 minutes before --to"},
			&cli.StringFlag{Name: "to", Usage: "`TIME` of the last second (default: now)"},
			&cli.StringFlag{Name: "zone", Value: "local", Usage: "`ZONE` of times that are given and printed: local, UTC, or a name such as Europe/Berlin"},
			&cli.StringSliceFlag{Name: "resource", Usage: "`RESOURCE` to compare: " + logquery.PatternHelp + "; all by default; repeatable"},
			&cli.StringSliceFlag{Name: "metric", Usage: "full `NAME` of a metric to compare; by default those that the database has of the instance; repeatable"},
			&cli.BoolFlag{Name: "all", Usage: "compare resources that the database does not have of the instance, too"},
			&cli.StringFlag{Name: "url", Usage: "`URL` of the query API, without /api/v1 (required)"},
			&cli.StringMapFlag{Name: "label", Usage: "`NAME=VALUE` of a label that the instance's series have, such as job and instance (required); repeatable"},
			&cli.StringFlag{Name: "namespace", Value: exporter.Namespace, Usage: "`PREFIX` of the metrics' names"},
			&cli.StringFlag{Name: "config.file", Usage: "`FILE` with authorization, TLS and headers, in Prometheus's HTTP client configuration format"},
			&cli.DurationFlag{Name: "timeout", Value: verify.DefaultTimeout, Usage: "`DURATION` that a request may take"},
			&cli.DurationFlag{Name: "delay", Value: verify.DefaultDelay, Usage: "`DURATION` within which a second may still arrive; younger ones are not compared"},
			&cli.StringFlag{Name: "format", Value: "table", Usage: "`FORMAT` of the report: table or json"},
			&cli.BoolFlag{Name: "heal", Usage: "write what is missing, and compare again"},
			&cli.BoolFlag{Name: "new", Usage: "write all that the log has, with the labels given"},
			&cli.StringSliceFlag{Name: "run", Usage: "`RUN` that --heal writes all the same, or unknown for seconds without one; repeatable"},
			&cli.StringFlag{Name: "remote-write", Usage: "`URL` to write to (default: --url and /api/v1/write)"},
			&cli.StringFlag{Name: "remote-write.config.file", Usage: "`FILE` for it, as --config.file, which is used without --remote-write"},
			&cli.StringFlag{Name: "openmetrics", Usage: "`FILE` to write to in the place of a server, for promtool tsdb create-blocks-from openmetrics"},
			&cli.IntFlag{Name: "rate", Value: verify.DefaultRate, Usage: "how many samples are sent in a second at most"},
		},
		Action: func(ctx context.Context, c *cli.Command) error {
			v, err := newVerification(c, time.Now())
			if err != nil {
				return flags.Usage(err)
			}
			return v.run(ctx, c.Root().Writer)
		},
	}
}

// verification is what is compared, and with what.
type verification struct {
	*logquery.Selection // of the log that is compared now
	logs                []*logquery.Selection
	gap                 verify.Gap
	from                verify.Options
	heal, new, json     bool
	to                  verify.Target
	file                string // of OpenMetrics text; empty for a server
	stderr              io.Writer
}

func newVerification(c *cli.Command, now time.Time) (*verification, error) {
	v := &verification{heal: c.Bool("heal"), new: c.Bool("new"), json: c.String("format") == "json", file: c.String("openmetrics"), stderr: c.Root().ErrWriter}
	errs := []error{(flags.Set{}).Check(c)}
	add := func(err error) { errs = append(errs, err) }
	o, err := source(c)
	add(err)
	o.OneApp = true
	dirs := c.StringSlice("dir")
	if len(dirs) == 0 {
		dirs = []string{""}
	}
	for _, o.Dir = range dirs {
		s, err := logquery.Select(o, now)
		add(err)
		v.logs = append(v.logs, s)
	}
	if f := c.String("format"); f != "table" && f != "json" {
		add(fmt.Errorf("--format: %q is not one of table, json", f))
	}
	v.from = verify.Options{
		URL: c.String("url"), Metrics: c.StringSlice("metric"), All: c.Bool("all"), Timeout: c.Duration("timeout"), Delay: c.Duration("delay"),
	}
	v.from.Labels = c.StringMap("label")
	v.from.Client, err = parseClient("config.file", c.String("config.file"))
	add(err)
	for _, run := range c.StringSlice("run") {
		id, err := strconv.ParseInt(run, 10, 64)
		if err != nil && run != "unknown" || err == nil && id <= 0 {
			add(fmt.Errorf("--run: %q is not a run, nor unknown", run))
		}
		v.from.Runs = append(v.from.Runs, id)
	}
	v.gap.Namespace = c.String("namespace")
	if !v.new {
		add(verifyFlags("", v.from.Check(v.gap.Namespace)))
	}
	for _, flag := range []string{"timeout", "delay", "rate"} {
		if fmt.Sprint(c.Value(flag)) == "0" || c.Value(flag) == time.Duration(0) {
			add(fmt.Errorf("--%s: 0 is none; leave it out for the default", flag))
		}
	}
	for _, flag := range []string{"remote-write", "remote-write.config.file", "rate", "openmetrics", "run"} {
		if c.IsSet(flag) && !v.heal && !(v.new && flag != "run") {
			add(fmt.Errorf("--%s: needs --heal", flag))
		}
	}
	if c.IsSet("remote-write.config.file") && !c.IsSet("remote-write") {
		add(errors.New("--remote-write.config.file: needs --remote-write; without it --config.file is used"))
	}
	if v.new && (v.heal || len(dirs) > 1) {
		add(errors.New("--new: not with --heal, which compares, nor with several directories"))
	}
	if v.file != "" && len(dirs) > 1 {
		add(errors.New("--openmetrics: not with several directories"))
	}
	if v.heal || v.new {
		add(v.parseTarget(c))
	}
	return v, errors.Join(errs...)
}

func (v *verification) parseTarget(c *cli.Command) (err error) {
	v.to = verify.Target{Rate: c.Int("rate"), Push: push.Options{
		URL: strings.TrimSuffix(v.from.URL, "/") + "/api/v1/write", Client: v.from.Client, Timeout: v.from.Timeout,
		Logger: slog.New(slog.NewTextHandler(v.stderr, nil)),
	}}
	var errs []error
	switch {
	case v.file != "":
		v.to.OpenMetrics = io.Discard // until it is made
	case c.IsSet("remote-write"):
		v.to.Push.URL = c.String("remote-write")
		v.to.Push.Client, err = parseClient("remote-write.config.file", c.String("remote-write.config.file"))
		errs = append(errs, err)
	case !v.new && v.from.Check(v.gap.Namespace) != nil:
		return nil // it has been said
	}
	errs = append(errs, verifyFlags("remote-write", v.to.Check()))
	if v.new {
		errs = append(errs, verifyFlags("label", push.CheckLabels(v.from.Labels)))
		v.to.Push.Labels = v.from.Labels
	}
	return errors.Join(errs...)
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
		errs = append(errs, fmt.Errorf("--%s: %w", name, e.Err))
	}
	return errors.Join(errs...)
}

// run compares each log, and heals if that is wanted.
func (v *verification) run(ctx context.Context, stdout io.Writer) (err error) {
	if v.file != "" {
		file, err := os.Create(v.file)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		v.to.OpenMetrics = file
	}
	var errs []error
	for _, log := range v.logs {
		v.Selection = log
		v.gap = verify.Gap{Searcher: log.Searcher, PIDs: log.PIDs, From: log.From, To: log.To, Match: log.Match, Namespace: v.gap.Namespace}
		err := v.one(ctx, stdout)
		if err != nil && len(v.logs) > 1 {
			err = fmt.Errorf("%s: %w", logquery.Visible(log.Searcher.Dir), err)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// one compares a log.
func (v *verification) one(ctx context.Context, stdout io.Writer) (err error) {
	var h verify.Healing
	switch {
	case v.new:
		h.WriteResult, err = verify.Write(ctx, v.gap, v.to)
		fmt.Fprintln(stdout, healed(h.WriteResult))
		if err == nil && h.Written == 0 || h.Refused+h.Unconfirmed+h.Left > 0 {
			err = errors.Join(err, errors.New("not all was written, or there was nothing"))
		}
		return err
	case !v.heal:
		h.After, err = verify.Check(ctx, v.gap, v.from)
	default:
		h, err = verify.Heal(ctx, v.gap, v.from, v.to)
		if !v.json && len(v.logs) == 1 && h.WriteResult != (push.WriteResult{}) {
			v.print(stdout, h.Before, nil)
			fmt.Fprintf(stdout, "\nhealed: %s\n\n", healed(h.WriteResult))
		}
	}
	return v.end(stdout, h, err)
}

func healed(r push.WriteResult) string {
	return fmt.Sprintf("%d samples were written, %d refused, %d unconfirmed, %d not sent", r.Written, r.Refused, r.Unconfirmed, r.Left)
}

// end prints the last report, and returns what decides the exit status.
func (v *verification) end(stdout io.Writer, h verify.Healing, err error) error {
	report := h.After
	switch {
	case v.json:
		out := struct {
			Dir string `json:"dir"`
			verify.Report
			Healed *push.WriteResult `json:"healed,omitempty"`
		}{Dir: v.Searcher.Dir, Report: report}
		if v.heal {
			out.Healed = &h.WriteResult
		}
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		err = errors.Join(err, e.Encode(out))
	case len(v.logs) > 1:
		fmt.Fprintf(stdout, "%s: %d seconds compared; missing: %d, different: %d, too much: %d, not healed: %d, under other labels: %d; healed: %d samples\n",
			logquery.Visible(v.Searcher.Dir), report.Seconds, report.Missing, report.Different, report.Extra, total(report.NotHealed), total(report.Elsewhere), h.Written)
	case v.file != "" && err == nil: // nothing of it is in the database yet
		v.print(stdout, report, nil)
	default:
		v.print(stdout, report, err)
		if report.Missing > 0 {
			v.advise(stdout, report, h.WriteResult)
		}
	}
	switch {
	case err != nil:
		return err
	case report.From.After(report.To):
		return errors.New("no second was compared")
	case v.file != "" && report.Different+report.Extra+total(report.NotHealed) == 0:
		return nil // it is in the file
	case !report.Clean() || len(report.NotHealed) > 0:
		return errors.New("the database is not what the log is")
	}
	return nil
}

func total(list []verify.NotHealed) (n int64) {
	for _, x := range list {
		n += x.Seconds
	}
	return n
}

// source reads the flags of the log.
func source(c *cli.Command) (logquery.Source, error) {
	return logquery.Source{
		App: c.String("app"), PIDs: c.IntSlice("pid"), From: c.String("from"), To: c.String("to"), Zone: c.String("zone"), Resources: c.StringSlice("resource"),
	}, nil
}

// parseClient makes a client from the file of a flag; nil is the default.
func parseClient(flag, path string) (*http.Client, error) {
	if path == "" {
		return nil, nil
	}
	client, err := flags.ParseClient(path)
	if err != nil {
		return nil, fmt.Errorf("--%s: %w", flag, err)
	}
	return client, nil
}
