package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v3"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/flags"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/logquery"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/verification"
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
			return v.Run(ctx, c.Root().Writer)
		},
	}
}

func newVerification(c *cli.Command, now time.Time) (*verification.Verification, error) {
	v := &verification.Verification{
		Namespace: c.String("namespace"), Heal: c.Bool("heal"), New: c.Bool("new"), File: c.String("openmetrics"), JSON: c.String("format") == "json",
	}
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
		v.Logs = append(v.Logs, s)
	}
	if f := c.String("format"); f != "table" && f != "json" {
		add(fmt.Errorf("--format: %q is not one of table, json", f))
	}
	v.From = verify.Options{
		URL: c.String("url"), Metrics: c.StringSlice("metric"), All: c.Bool("all"), Timeout: c.Duration("timeout"), Delay: c.Duration("delay"),
	}
	v.From.Labels = c.StringMap("label")
	v.From.Client, err = parseClient("config.file", c.String("config.file"))
	add(err)
	for _, run := range c.StringSlice("run") {
		id, err := strconv.ParseInt(run, 10, 64)
		if err != nil && run != "unknown" || err == nil && id <= 0 {
			add(fmt.Errorf("--run: %q is not a run, nor unknown", run))
		}
		v.From.Runs = append(v.From.Runs, id)
	}
	if !v.New {
		add(verifyFlags("", v.From.Check(v.Namespace)))
	}
	for _, flag := range []string{"timeout", "delay", "rate"} {
		if fmt.Sprint(c.Value(flag)) == "0" || c.Value(flag) == time.Duration(0) {
			add(fmt.Errorf("--%s: 0 is none; leave it out for the default", flag))
		}
	}
	for _, flag := range []string{"remote-write", "remote-write.config.file", "rate", "openmetrics", "run"} {
		if c.IsSet(flag) && !v.Heal && !(v.New && flag != "run") {
			add(fmt.Errorf("--%s: needs --heal", flag))
		}
	}
	if c.IsSet("remote-write.config.file") && !c.IsSet("remote-write") {
		add(errors.New("--remote-write.config.file: needs --remote-write; without it --config.file is used"))
	}
	if v.New && (v.Heal || len(dirs) > 1) {
		add(errors.New("--new: not with --heal, which compares, nor with several directories"))
	}
	if v.File != "" && len(dirs) > 1 {
		add(errors.New("--openmetrics: not with several directories"))
	}
	if v.Heal || v.New {
		add(parseTarget(c, v))
	}
	return v, errors.Join(errs...)
}

func parseTarget(c *cli.Command, v *verification.Verification) (err error) {
	v.To = verify.Target{Rate: c.Int("rate"), Push: push.Options{
		URL: strings.TrimSuffix(v.From.URL, "/") + "/api/v1/write", Client: v.From.Client, Timeout: v.From.Timeout,
		Logger: slog.New(slog.NewTextHandler(c.Root().ErrWriter, nil)),
	}}
	var errs []error
	switch {
	case v.File != "":
		v.To.OpenMetrics = io.Discard // until it is made
	case c.IsSet("remote-write"):
		v.To.Push.URL = c.String("remote-write")
		v.To.Push.Client, err = parseClient("remote-write.config.file", c.String("remote-write.config.file"))
		errs = append(errs, err)
	case !v.New && v.From.Check(v.Namespace) != nil:
		return nil // it has been said
	}
	errs = append(errs, verifyFlags("remote-write", v.To.Check()))
	if v.New {
		errs = append(errs, verifyFlags("label", push.CheckLabels(v.From.Labels)))
		v.To.Push.Labels = v.From.Labels
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
