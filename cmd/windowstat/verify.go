package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
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

// verifyCommand is windowstat verify: package verification prints what package verify of the exporters finds, and writes.
func verifyCommand() *cli.Command {
	var o verifyOptions
	set := o.flags()
	return &cli.Command{
		Name:  "verify",
		Usage: "compare a database with the metric log, and write what is missing",
		Description: `The seconds from --from to --to, both included, are read from the database by the query API of Prometheus, which
VictoriaMetrics, Thanos and Mimir have, too, and compared with the metric log, value by value: those of the last 15 minutes if there
is neither. A time is one of
  ` + logquery.TimeHelp + `.

The labels select the series of one instance; if they select several, it is the one with the last run of the log:
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
		Flags: set.Flags(),
		Action: func(ctx context.Context, c *cli.Command) error {
			if err := set.Check(c, o.check(time.Now(), c.Root().ErrWriter)); err != nil {
				return err
			}
			return o.v.Run(ctx, c.Root().Writer)
		},
	}
}

// verifyOptions are what the flags fill in.
type verifyOptions struct {
	v      verification.Verification
	source logquery.Source
	target push.Options // with another URL than that of the database
	format string
}

func (o *verifyOptions) flags() flags.Set {
	from := &o.v.From
	writes := []string{"heal|new"}
	return append(sourceFlags(&o.source, "repeatable: each has a line"), flags.Set{
		{Flag: &cli.BoolFlag{Name: "all", Destination: &from.All, Usage: "compare metrics and resources that the database does not have of the instance, too"}},
		{Of: "URL", Flag: &cli.StringFlag{Name: "url", Destination: &from.URL, Usage: "`URL` of the query API, without /api/v1 (required)"}},
		{Of: "Labels", Flag: &cli.StringMapFlag{Name: "label", Destination: &from.Labels, Usage: "`NAME=VALUE` of a label that the instance's series have, such as job and instance (required); repeatable"}},
		{Of: "Namespace", Flag: &cli.StringFlag{Name: "namespace", Value: exporter.Namespace, Destination: &o.v.Namespace, Usage: "`PREFIX` of the metrics' names"}},
		{Flag: &cli.GenericFlag{Name: "config.file", Value: flags.Value(&from.Client, "", flags.ParseClient), Usage: flags.ClientUsage}},
		{Of: "Timeout", Flag: &cli.DurationFlag{Name: "timeout", Value: verify.DefaultTimeout, Destination: &from.Timeout, Usage: "`DURATION` that a request may take"}},
		{Of: "Delay", Flag: &cli.DurationFlag{Name: "delay", Value: verify.DefaultDelay, Destination: &from.Delay, Usage: "`DURATION` within which a second may arrive; younger ones are not compared"}},
		{Flag: &cli.GenericFlag{Name: "format", Value: flags.OneOf(&o.format, "table", "table", "json"), Usage: "`FORMAT` of the report: table or json"}},
		{Flag: &cli.BoolFlag{Name: "heal", Destination: &o.v.Heal, Usage: "write what is missing, and compare again"}},
		{Not: []string{"heal"}, Flag: &cli.BoolFlag{Name: "new", Destination: &o.v.New, Usage: "write all that the log has, with the labels given"}},
		{Needs: []string{"heal"}, Flag: &cli.GenericFlag{Name: "run", Value: flags.Values(&from.Runs, parseRun), Usage: "`RUN` that --heal writes all the same, or unknown for seconds without one; repeatable"}},
		{Of: "Target", Needs: writes, Flag: &cli.StringFlag{Name: "remote-write", Destination: &o.target.URL, Usage: "`URL` to write to (default: --url and /api/v1/write)"}},
		{Needs: []string{"heal|new", "remote-write"}, Flag: &cli.GenericFlag{Name: "remote-write.config.file", Value: flags.Value(&o.target.Client, "", flags.ParseClient), Usage: "`FILE` for it, as --config.file, which is used without --remote-write"}},
		{Needs: writes, Flag: &cli.StringFlag{Name: "openmetrics", Destination: &o.v.File, Usage: "`FILE` to write to in the place of a server, for promtool tsdb create-blocks-from openmetrics"}},
	}...)
}

// parseRun reads the number of a run, see [collector.Collector.RunID]; 0 is that of seconds that do not tell theirs.
func parseRun(s string) (int64, error) {
	id, err := strconv.ParseInt(s, 10, 64)
	if s == "unknown" {
		return 0, nil
	}
	if err != nil || id <= 0 {
		return 0, fmt.Errorf("%q is not a run, nor unknown", s)
	}
	return id, nil
}

// check returns what is wrong with the options, and fills in what follows from them.
func (o *verifyOptions) check(now time.Time, stderr io.Writer) error {
	v := &o.v
	v.JSON, o.source.OneApp = o.format == "json", true
	logs, err := logquery.Select(o.source, now)
	v.Logs = logs
	errs := []error{err}
	if len(logs) > 1 && (v.New || v.File != "") {
		errs = append(errs, errors.New("--dir: several are not for --new or --openmetrics"))
	}
	var wrong error
	if !v.New {
		wrong = v.From.Check(v.Namespace)
		errs = append(errs, wrong)
	}
	if !v.Heal && !v.New || wrong != nil && o.target.URL == "" {
		return errors.Join(errs...)
	}
	v.To.Push = push.Options{
		URL:    cmp.Or(o.target.URL, strings.TrimSuffix(v.From.URL, "/")+"/api/v1/write"),
		Client: v.From.Client, Timeout: v.From.Timeout, Logger: slog.New(slog.NewTextHandler(stderr, nil)),
	}
	if o.target.URL != "" {
		v.To.Push.Client = o.target.Client
	}
	if v.File != "" {
		v.To.OpenMetrics = io.Discard // until it is made
	}
	for _, e := range collector.OptionErrors(v.To.Check()) {
		errs = append(errs, &collector.OptionError{Package: e.Package, Field: "Target", Err: e.Err})
	}
	if v.New {
		errs = append(errs, push.CheckLabels(v.From.Labels))
		v.To.Push.Labels = v.From.Labels
	}
	return errors.Join(errs...)
}
