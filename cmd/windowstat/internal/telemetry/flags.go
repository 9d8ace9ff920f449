package telemetry

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/promslog"
	"github.com/urfave/cli/v3"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/flags"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/webconfig"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/exporter/push"
	"github.com/windowstat/windowstat/exporter/verify"
)

// Options are those of a command that serves statistics. [Options.Flags] fill them in.
type Options struct {
	// Exporter are the ways out; a push or a comparison without a URL is none.
	Exporter  exporter.Options
	Listen    []string        // addresses of the pages
	WebConfig *webconfig.File // TLS and passwords of the pages; nil for none
	Profiles  bool            // serve /debug/pprof/

	level  string
	format string
	deltas bool // by OTLP, which is the last way to push
}

// pushFlags are the ways to push, by what the names of their flags begin with.
var pushFlags = [...]struct {
	prefix, server string
	format         push.Format
}{
	{"remote-write.", "a server that takes Prometheus remote write", push.RemoteWrite},
	{"vm.push-", "VictoriaMetrics' import endpoint, …/api/v1/import/prometheus", push.VictoriaMetrics},
	{"otlp.", "a server that takes OpenTelemetry's OTLP, …/v1/metrics", push.OTLP},
}

// Flags returns the flags of the options.
func (o *Options) Flags() flags.Set {
	x := &o.Exporter
	pages := flags.Set{
		{Flag: &cli.GenericFlag{Name: "web.listen-address", Value: flags.Values(&o.Listen, flags.ParseAddress), DefaultText: DefaultListen, Usage: "`ADDRESS` of the pages, host:port; repeatable, all are served"}},
		{Flag: &cli.GenericFlag{Name: "web.config.file", Value: flags.Value(&o.WebConfig, "", webconfig.Open), Usage: "`FILE` that enables TLS or authentication, in the exporters' web configuration format; HTTP/2 is off unless the file has http2: true"}},
		{Of: "MetricsPath", Flag: &cli.StringFlag{Name: "web.telemetry-path", Value: "/metrics", Destination: &x.MetricsPath, Usage: "`PATH` of the metrics page; the per-second page is at PATH/seconds, the live page at /live/"}},
		{Flag: &cli.GenericFlag{Name: "web.proxies", Value: flags.Values(&x.Seconds.Proxies, flags.ParseNetwork), Usage: "`NETWORK` of proxies before the pages, such as 10.0.0.7 or 10.0.0.0/8; repeatable"}},
		{Flag: &cli.BoolFlag{Name: "web.enable-pprof", Destination: &o.Profiles, Usage: "serve profiles of this process at /debug/pprof/, to everybody who can read the metrics page"}},
		{Of: "Metrics.By", Flag: &cli.GenericFlag{Name: "metrics.by", Value: flags.Value(&x.Metrics.By, "", func(s string) (prom.By, error) { return prom.By(s), nil }), Usage: "`LABEL` of the metrics of resources, besides resource: origin or entrance"}},
		{Of: "LimitsFile", Flag: &cli.StringFlag{Name: "limits.file", Destination: &x.LimitsFile, Usage: "`FILE` of limits, YAML or JSON; read again on SIGHUP and when it changes"}},
	}
	messages := flags.Set{
		{Flag: &cli.GenericFlag{Name: "log.level", Value: flags.OneOf(&o.level, "info", promslog.LevelFlagOptions...), Usage: "lowest `LEVEL` of messages: " + strings.Join(promslog.LevelFlagOptions, ", ")}},
		{Flag: &cli.GenericFlag{Name: "log.format", Value: flags.OneOf(&o.format, "logfmt", promslog.FormatFlagOptions...), Usage: "`FORMAT` of messages: " + strings.Join(promslog.FormatFlagOptions, " or ")}},
	}
	// A flag without what it needs is a mistake: it would silently do nothing.
	logged := []string{"metric-log.dir"}
	log := flags.Set{
		{Of: "Log Log.Dir", Flag: &cli.StringFlag{Name: "metric-log.dir", Destination: &x.Log.Dir, Usage: "`DIRECTORY` of the metric log"}},
		{Of: "Log.MaxFiles", Needs: logged, Flag: &cli.IntFlag{Name: "metric-log.max-files", Destination: &x.Log.MaxFiles, Usage: "how many files of the log are kept", DefaultText: fmt.Sprintf("%d, or any number with one of the two flags below", metriclog.DefaultMaxFiles)}},
		{Of: "Log.MaxBytes", Needs: logged, Flag: &cli.Int64Flag{Name: "metric-log.max-bytes", Destination: &x.Log.MaxBytes, Usage: "how many bytes they may have together", DefaultText: "no limit"}},
		{Of: "Log.MaxAge", Needs: logged, Flag: &cli.DurationFlag{Name: "metric-log.max-age", Destination: &x.Log.MaxAge, Usage: "how old the last second of a file may be", DefaultText: "no limit"}},
		{Of: "Log.Sync", Needs: logged, Flag: &cli.DurationFlag{Name: "metric-log.sync", Destination: &x.Log.Sync, Usage: "fsync interval in whole seconds", DefaultText: "left to the operating system"}},
		{Needs: logged, Flag: &cli.BoolFlag{Name: "metric-log.zero-rows", Destination: &x.Log.ZeroRows, Usage: "write rows for seconds in which nothing happened, too"}},
	}
	var pushes flags.Set
	// Each way to push has the same five flags, for one server. Several of a kind are for programs, by exporter.Options.
	x.Push, x.Verify = make([]push.Options, len(pushFlags)), make([]verify.Options, 1)
	for i, w := range pushFlags {
		p, pushed := &x.Push[i], []string{w.prefix + "url"}
		p.Format, p.Histogram = w.format, w.format == push.OTLP // every receiver takes its histograms
		pushes = append(pushes, flags.Set{
			{Of: w.prefix + ".URL " + w.prefix, Flag: &cli.StringFlag{Name: w.prefix + "url", Destination: &p.URL, Usage: "`URL` of " + w.server + ", to send every second to"}},
			{Of: w.prefix + ".Labels", Needs: pushed, Flag: &cli.StringMapFlag{Name: w.prefix + "label", Destination: &p.Labels, Usage: "`NAME=VALUE` of a label of all series; repeatable; job and instance have defaults"}},
			{Of: w.prefix + ".Client", Needs: pushed, Flag: &cli.GenericFlag{Name: w.prefix + "config.file", Value: flags.Value(&p.Client, "", flags.ParseClient), Usage: flags.ClientUsage}},
			{Of: w.prefix + ".Interval", Needs: pushed, Flag: &cli.DurationFlag{Name: w.prefix + "interval", Value: push.DefaultInterval, Destination: &p.Interval, Usage: "`DURATION` between two requests"}},
			{Of: w.prefix + ".Timeout", Needs: pushed, Flag: &cli.DurationFlag{Name: w.prefix + "timeout", Value: push.DefaultTimeout, Destination: &p.Timeout, Usage: "`DURATION` that a request may take"}},
		}...)
	}
	pushes = append(pushes, flags.Flag{Needs: []string{"otlp.url"}, Flag: &cli.BoolFlag{Name: "otlp.deltas", Destination: &o.deltas, Usage: "send sums and histograms of single seconds there, with delta temporality, and not cumulative ones"}})
	verified, compared := &x.Verify[0], []string{"verify.url"}
	compare := flags.Set{
		{Of: "Verify[0] Verify[0].URL", Flag: &cli.StringFlag{Name: "verify.url", Destination: &verified.URL, Usage: "`URL` of a query API, without /api/v1, of a database to compare with the metric log every five minutes"}},
		{Of: "Verify[0].Labels", Needs: compared, Flag: &cli.StringMapFlag{Name: "verify.label", Destination: &verified.Labels, Usage: "`NAME=VALUE` of a label that the series of this instance have there, such as job and instance; repeatable"}},
		{Of: "Verify[0].Client", Needs: compared, Flag: &cli.GenericFlag{Name: "verify.config.file", Value: flags.Value(&verified.Client, "", flags.ParseClient), Usage: flags.ClientUsage}},
	}
	return slices.Concat(
		pages.Under("Pages"), log.Under("Metric log"), messages.Under("Messages"), pushes.Under("Push"), compare.Under("Comparison with a database"),
	)
}

// DefaultListen is where the pages are.
const DefaultListen = "127.0.0.1:9719"

// Check returns what is wrong with the options of the ways out. It makes nothing.
func (o *Options) Check() error { return o.flagged(o.exporter().Check()) }

// exporter returns the options of the ways out, with the pushes and the comparison that have a URL.
func (o *Options) exporter() exporter.Options {
	x := o.Exporter
	x.Push = slices.Clone(x.Push)
	if o.deltas {
		x.Push[len(x.Push)-1].Format = push.OTLPDelta
	}
	x.Push = slices.DeleteFunc(x.Push, func(p push.Options) bool { return p.URL == "" })
	x.Verify = slices.DeleteFunc(slices.Clone(x.Verify), func(v verify.Options) bool { return v.URL == "" })
	return x
}

// flagged returns an error of package exporter with the fields that [Options.Flags] name: a push is called as its flags begin.
func (o *Options) flagged(err error) error {
	var names []string
	for i, p := range o.Exporter.Push {
		if p.URL != "" {
			names = append(names, fmt.Sprintf("Push[%d]", len(names)/2), pushFlags[i].prefix)
		}
	}
	// The Exporter knows the pushes by their numbers, which a user of flags has never seen.
	replace := strings.NewReplacer(names...)
	var errs []error
	for _, e := range collector.OptionErrors(err) {
		errs = append(errs, &collector.OptionError{Package: e.Package, Field: replace.Replace(e.Field), Err: e.Err})
	}
	return errors.Join(errs...)
}

// Logger returns the logger for messages of the command.
func (o *Options) Logger(stderr io.Writer) *slog.Logger {
	level, format := promslog.NewLevel(), promslog.NewFormat()
	_, _ = level.Set(o.level), format.Set(o.format) // which the flags have checked
	return promslog.New(&promslog.Config{Level: level, Format: format, Writer: stderr})
}

// MetricLog returns the options of the metric log for those who write or read it without an Exporter.
func (o *Options) MetricLog(stderr io.Writer) metriclog.Options {
	log := o.Exporter.Log
	log.App, log.Logger = o.Exporter.App, o.Logger(stderr)
	return log
}

// LastLogged returns the last second of the metric log, zero if there is none.
func (o *Options) LastLogged(stderr io.Writer) (last time.Time, err error) {
	if o.Exporter.Log.Dir == "" {
		return last, nil
	}
	if last, err = metriclog.Last(o.MetricLog(stderr)); err != nil {
		err = fmt.Errorf("--metric-log.dir: %w", err)
	}
	return last, err
}
