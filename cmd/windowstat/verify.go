package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/flags"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/logquery"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/verification"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/push"
	"github.com/windowstat/windowstat/exporter/verify"
)

// verifyCommand is windowstat verify. Package exporter/verify compares and writes. Package verification selects the
// mode and prints the results.
//
// The command reads from two sources: the log and a database. It takes the log as correct.
func verifyCommand() *cli.Command {
	var o verifyOptions
	set := o.flags()
	return set.Command(&cli.Command{
		Name:  "verify",
		Usage: "compare a database with the metric log, and write missing samples",
		Description: `Reads the seconds from --from to --to, both included, from the database and compares them with
the metric log, value by value. Without both flags these are the last 15 minutes. The database needs the query API of
Prometheus, which VictoriaMetrics, Thanos and Mimir also have. A time is one of
  ` + logquery.TimeHelp + `.

The labels select the series of one instance. If they select several, the instance with the last run of the log is
compared:
  windowstat verify --dir DIR --from -6h --url http://prometheus:9090 \
    --label job=shop-seconds --label instance=shop:9719

--heal writes the missing samples, and no others, by remote write, and compares again. The server must accept samples
out of order. VictoriaMetrics does, and Prometheus within its out_of_order_time_window. With --openmetrics the samples
are written to a file for promtool, which makes blocks of samples older than three hours. Samples with other values
stay, as do samples that the log does not have.

In the log and in the database, each second has the run of the process that counted it. --heal writes only seconds of
runs that these labels have, and no seconds that other labels have or should have. It prints those seconds with the
reason. --run selects runs by hand. --new writes all seconds of the log with the given labels, and compares nothing.
It is for imported logs and empty databases.

The command compares the metrics that the log has exactly. Histograms, response times and sampled series are not in
the log. A resource that was idle in a second has no row; the database need not have its zero. Resources that are
absent from the database are omitted, unless --all is given.

Exit status 0 means that the database is right, even if other labels have some of it; 1 that samples are missing,
different or too many, or that a source could not be read; 2 that the arguments are wrong.`,
		Action: func(c *cli.Context) error {
			if err := set.Check(c, o.check(time.Now(), c.App.ErrWriter)); err != nil {
				return err
			}
			return o.v.Run(c.Context, c.App.Writer)
		},
	})
}

// verifyOptions has the options that the flags set.
type verifyOptions struct {
	// v.From is the database that is read, and v.To is the server that is written to.
	v      verification.Verification // the work
	source logquery.Source           // the rows of the log
	target push.Options              // of --remote-write
	format string
}

// flags returns the flags in the order of a user's questions: the log, the database, the report, and writing.
func (o *verifyOptions) flags() flags.Set {
	from := &o.v.From
	// A flag that configures writing is an error without --heal and --new.
	writes := []string{"heal|new"}
	return append(sourceFlags(&o.source, "each has a line in the report"), flags.Set{
		{
			// By default, a metric that the database never had is no gap: the configuration of the server may exclude
			// it.
			Name: "all", Value: flags.Bool(&from.All),
			Usage: "also compare metrics and resources that the database does not have for the instance",
		},
		{
			// Package verify checks that there is a URL and a label. With --new nothing is read, so check omits this
			// test.
			Name: "url", Value: flags.String(&from.URL, ""), Of: "URL",
			Usage: "`URL` of the query API, without /api/v1 (required)",
		},
		{
			Name: "label", Value: flags.Map(&from.Labels), Of: "Labels",
			Usage: "`NAME=VALUE` of a label of the instance's series, such as job and instance (required); repeatable",
		},
		{
			// A service can export its metrics with another prefix. The comparison then needs this prefix.
			Name: "namespace", Value: flags.String(&o.v.Namespace, exporter.Namespace), Of: "Namespace",
			Usage: "`PREFIX` of the metrics' names",
		},
		{
			// Sentinel's log has no runs. windowstat sentinel writes the runs to its state directory.
			Name: "state-dir", Value: flags.String(&o.v.StateDir, ""),
			Usage: "`DIRECTORY` of the state of windowstat sentinel, if --dir has logs of Sentinel",
		},
		{Name: "config.file", Value: flags.Parsed(&from.Client, "", flags.ParseClient), Usage: flags.ClientUsage},
		{
			// Seconds of the last scrape interval are usually on their way to the database. Such a second is not
			// missing.
			Name: "delay", Value: flags.Number(&from.Delay, verify.DefaultDelay), Of: "Delay",
			Usage: "maximum `DURATION` until a second arrives; younger seconds are not compared",
		},
		{
			Name: "format", Value: flags.OneOf(&o.format, "table", "table", "json"),
			Usage: "`FORMAT` of the report: table or json",
		},
		// --heal compares before and after, and writes only samples that the database does not have.
		{Name: "heal", Value: flags.Bool(&o.v.Heal), Usage: "write missing samples, and compare again"},
		{
			// --new writes without reading first, so it must not be combined with --heal.
			Name: "new", Value: flags.Bool(&o.v.New), Not: []string{"heal"},
			Usage: "write all seconds of the log, with the given labels",
		},
		{
			// --heal finds the labels of a second by its run, and omits runs of other labels. This flag overrides the
			// choice.
			Name: "run", Value: flags.List(&from.Runs, parseRun), Needs: []string{"heal"},
			Usage: "`RUN` that --heal writes in any case, or unknown for seconds without a run; repeatable",
		},
		{
			Name: "remote-write", Value: flags.String(&o.target.URL, ""), Of: "Target", Needs: writes,
			Usage: "`URL` to write to (default: /api/v1/write of --url)",
		},
		{
			Name: "remote-write.config.file", Value: flags.Parsed(&o.target.Client, "", flags.ParseClient),
			Needs: []string{"heal|new", "remote-write"},
			Usage: "`FILE` like that of --config.file, for --remote-write; without --remote-write, --config.file " +
				"is used",
		},
		{
			// Prometheus refuses old samples by remote write. promtool creates blocks from this file, and Prometheus
			// loads them.
			Name: "openmetrics", Value: flags.String(&o.v.File, ""), Needs: writes,
			Usage: "`FILE` to write to instead of a server, for promtool tsdb create-blocks-from openmetrics",
		},
	}...)
}

// parseRun parses the number of a run, see [collector.Collector.RunID], or the word unknown. It returns 0 for unknown,
// the number of seconds without a run.
func parseRun(s string) (int64, error) {
	id, err := strconv.ParseInt(s, 10, 64)
	if s == "unknown" {
		return 0, nil
	}
	// Runs are positive. The number 0 itself is an error, because a script may print it for an absent run.
	if err != nil || id <= 0 {
		return 0, fmt.Errorf("%q is not a run: a positive number or the word unknown", s)
	}
	return id, nil
}

// check returns the errors in the options. It also sets the options that follow from others: without --remote-write and
// --openmetrics, samples are written to the compared server.
func (o *verifyOptions) check(now time.Time, stderr io.Writer) error {
	v := &o.v
	// A database has the series of one application under the given labels, so several applications cannot be compared.
	v.JSON, o.source.OneApp = o.format == "json", true
	logs, err := logquery.Select(o.source, now)
	v.Logs = logs
	// A file or a set of labels cannot distinguish the seconds of several hosts.
	errs := []error{err}
	if len(logs) > 1 && (v.New || v.File != "") {
		errs = append(errs, errors.New("--dir: --new and --openmetrics allow only one directory"))
	}
	var wrong error
	if !v.New {
		wrong = v.From.Check(v.Namespace)
		errs = append(errs, wrong)
	}
	// Stop here if nothing is written. Also stop if --url is wrong, because the URL to write to is derived from --url.
	if !v.Heal && !v.New || wrong != nil && o.target.URL == "" {
		return errors.Join(errs...)
	}
	v.To.Push = push.Options{
		URL:    cmp.Or(o.target.URL, strings.TrimSuffix(v.From.URL, "/")+"/api/v1/write"),
		Client: v.From.Client, Timeout: v.From.Timeout, Logger: slog.New(slog.NewTextHandler(stderr, nil)),
	}
	// Do not send the credentials of --config.file to a different server.
	if o.target.URL != "" {
		v.To.Push.Client = o.target.Client
	}
	// The check of the options requires a writer. Do not create the file for a command that will fail.
	if v.File != "" {
		v.To.OpenMetrics = io.Discard // Run creates the file
	}
	for _, e := range collector.OptionErrors(v.To.Check()) {
		errs = append(errs, &collector.OptionError{Package: e.Package, Field: "Target", Err: e.Err})
	}
	// Heal takes the labels from the database. With --new there is no comparison, so the given labels are checked and
	// used.
	if v.New {
		errs = append(errs, push.CheckLabels(v.From.Labels))
		v.To.Push.Labels = v.From.Labels
	}
	return errors.Join(errs...)
}
