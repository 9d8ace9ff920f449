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

	"github.com/windowstat/windowstat/cmd/windowstat/internal/flags"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/webconfig"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/exporter/push"
	"github.com/windowstat/windowstat/exporter/verify"
)

// Options has the options of a command that serves statistics. The flags of [Options.Flags] set them.
type Options struct {
	// Exporter has the options of the exporters. [Start] ignores a push and a comparison without a URL.
	Exporter exporter.Options
	// Listen has the addresses of the pages. If it is empty, Start uses DefaultListen.
	Listen    []string        // addresses of the pages
	WebConfig *webconfig.File // TLS and passwords of the pages; nil for none
	Profiles  bool            // serve /debug/pprof/

	// The flags check these texts, and [Options.Logger] uses them.
	level  string // of messages
	format string // of messages
	deltas bool   // send OTLP with delta temporality
}

// pushKinds has the kinds of pushes, in the order of Options.Exporter.Push. OTLP must be the last one. prefix is the
// beginning of the names of their flags, and server describes the receiver.
var pushKinds = [...]struct {
	prefix, server string
	format         push.Format
}{
	{"remote-write.", "a server that accepts Prometheus remote write", push.RemoteWrite},
	{"vm.push-", "VictoriaMetrics' import endpoint, …/api/v1/import/prometheus", push.VictoriaMetrics},
	{"otlp.", "a server that accepts OpenTelemetry's OTLP, …/v1/metrics", push.OTLP},
}

// Flags returns the flags of commands that count calls.
func (o *Options) Flags() flags.Set {
	return slices.Concat(o.pageFlags(), o.logFlags(), o.messageFlags(), o.pushFlags(), o.compareFlags())
}

// ServeFlags returns the flags of commands that serve seconds without counting calls. The result has the flags of
// [Options.Flags] except for limits, for labels that only counting commands have, for the metric log, and for the
// comparison with it.
func (o *Options) ServeFlags() flags.Set {
	// pageFlags returns a new set each time, so the deletion does not affect other commands.
	pages := slices.DeleteFunc(o.pageFlags(), func(f flags.Flag) bool {
		return f.Name == "limits.file" || f.Name == "metrics.by" || f.Name == "metrics.opentelemetry"
	})
	return slices.Concat(pages, o.messageFlags(), o.pushFlags())
}

// pageFlags returns the flags of the pages, and of the metrics on them.
func (o *Options) pageFlags() flags.Set {
	x := &o.Exporter
	by := func(s string) (prom.By, error) { return prom.By(s), nil } // checked by package prom
	return flags.Set{
		{
			Name: "web.listen-address", Value: flags.List(&o.Listen, flags.ParseAddress), Default: DefaultListen,
			Usage: "`ADDRESS` of the pages, host:port; repeatable, all are served",
		},
		{
			Name: "web.config.file", Value: flags.Parsed(&o.WebConfig, "", webconfig.Open),
			Usage: "`FILE` that enables TLS or authentication, in the exporters' web configuration format; HTTP/2 " +
				"is off unless the file has http2: true",
		},
		{
			Name: "web.telemetry-path", Value: flags.String(&x.MetricsPath, "/metrics"), Of: "MetricsPath",
			Usage: "`PATH` of the metrics page; the per-second page is at PATH/seconds, the live page at /live/",
		},
		{
			Name: "web.proxies", Value: flags.List(&x.Seconds.Proxies, flags.ParseNetwork),
			Usage: "`NETWORK` of proxies in front of the pages, such as 10.0.0.7 or 10.0.0.0/8; repeatable",
		},
		{
			Name: "web.enable-pprof", Value: flags.Bool(&o.Profiles),
			Usage: "serve profiles of this process at /debug/pprof/, to all clients that may read the metrics page",
		},
		{
			Name: "metrics.by", Value: flags.Parsed(&x.Metrics.By, "", by).Suggest("origin", "entrance"),
			Of:    "Metrics.By",
			Usage: "`LABEL` of the metrics of resources, in addition to resource: origin or entrance",
		},
		{
			Name: "metrics.opentelemetry", Value: flags.Bool(&x.Collector.OpenTelemetry), Of: "Collector.OpenTelemetry",
			Usage: "also show inbound calls under OpenTelemetry's names, such as http_server_request_duration_seconds",
		},
		{
			Name: "limits.file", Value: flags.String(&x.LimitsFile, ""), Of: "LimitsFile",
			Usage: "`FILE` of limits, YAML or JSON; read again on SIGHUP and when it changes",
		},
	}.Under("Pages")
}

// messageFlags returns the flags of log messages.
func (o *Options) messageFlags() flags.Set {
	levels, formats := promslog.LevelFlagOptions, promslog.FormatFlagOptions
	return flags.Set{
		{
			Name: "log.level", Value: flags.OneOf(&o.level, "info", levels...),
			Usage: "lowest `LEVEL` of messages: " + strings.Join(levels, ", "),
		},
		{
			Name: "log.format", Value: flags.OneOf(&o.format, "logfmt", formats...),
			Usage: "`FORMAT` of messages: " + strings.Join(formats, " or "),
		},
	}.Under("Messages")
}

// logFlags returns the flags of the metric log. They require --metric-log.dir, because they would have no effect
// without it.
func (o *Options) logFlags() flags.Set {
	log := &o.Exporter.Log
	// A user who sets a size or an age without a directory expects a log, so the flag alone is an error.
	needs := []string{"metric-log.dir"}
	return flags.Set{
		{
			Name: "metric-log.dir", Value: flags.String(&log.Dir, ""), Of: "Log Log.Dir",
			Usage: "`DIRECTORY` of the metric log",
		},
		{
			Name: "metric-log.max-bytes", Value: flags.Number(&log.MaxBytes, 0), Of: "Log.MaxBytes", Needs: needs,
			Usage: "maximum `NUMBER` of bytes of all files together",
			Default: fmt.Sprintf("%d, or no limit with --metric-log.max-age",
				metriclog.DefaultMaxFiles*metriclog.DefaultMaxFileSize),
		},
		{
			Name: "metric-log.max-age", Value: flags.Number(&log.MaxAge, 0), Of: "Log.MaxAge", Needs: needs,
			Usage: "maximum age of the last second of a file, a `DURATION`", Default: "no limit",
		},
		{
			Name: "metric-log.sync", Value: flags.Number(&log.Sync, 0), Of: "Log.Sync", Needs: needs,
			Usage: "`DURATION` between calls of fsync, in whole seconds", Default: "left to the operating system",
		},
	}.Under("Metric log")
}

// pushFlags returns the flags of the pushes. Each kind has four flags, for one server. A program that uses package
// exporter can push to several servers of a kind.
func (o *Options) pushFlags() (all flags.Set) {
	// The flags store pointers to the elements, so all elements must exist first. The method exporter removes the
	// elements without a URL later.
	o.Exporter.Push = make([]push.Options, len(pushKinds))
	for i, kind := range pushKinds {
		// The URL enables a push. Without it, the other flags of its kind are errors.
		p, needs := &o.Exporter.Push[i], []string{kind.prefix + "url"}
		p.Format, p.Histogram = kind.format, kind.format == push.OTLP // every OTLP receiver accepts histograms
		all = append(all, flags.Set{
			{
				Name: kind.prefix + "url", Value: flags.String(&p.URL, ""), Of: kind.prefix + ".URL " + kind.prefix,
				Usage: "`URL` of " + kind.server + ", to which every second is sent",
			},
			{
				Name: kind.prefix + "label", Value: flags.Map(&p.Labels), Of: kind.prefix + ".Labels", Needs: needs,
				Usage: "`NAME=VALUE` of a label of all series; repeatable; job and instance have defaults",
			},
			{
				Name: kind.prefix + "config.file", Value: flags.Parsed(&p.Client, "", flags.ParseClient),
				Of: kind.prefix + ".Client", Needs: needs, Usage: flags.ClientUsage,
			},
			{
				Name: kind.prefix + "interval", Value: flags.Number(&p.Interval, push.DefaultInterval),
				Of: kind.prefix + ".Interval", Needs: needs, Usage: "`DURATION` between two requests",
			},
		}...)
	}
	return append(all, flags.Flag{
		Name: "remote-write.protocol", Needs: []string{"remote-write.url"},
		Value: flags.Parsed(&o.Exporter.Push[0].Format, "1.0", parseProtocol).Suggest("1.0", "2.0", "2.0-deltas"),
		Usage: "`VERSION` of remote write: 1.0; 2.0, with metadata and cumulative counters; or 2.0-deltas, with " +
			"deltas instead, for servers that use start timestamps",
	}, flags.Flag{
		Name: "otlp.deltas", Value: flags.Bool(&o.deltas), Needs: []string{"otlp.url"},
		Usage: "send sums and histograms of single seconds, with delta temporality, instead of cumulative ones",
	}).Under("Push")
}

// parseProtocol returns the format of a push for a version of remote write.
func parseProtocol(version string) (push.Format, error) {
	switch version {
	case "1.0":
		return push.RemoteWrite, nil
	case "2.0":
		return push.RemoteWrite2, nil
	case "2.0-deltas":
		return push.RemoteWrite2Delta, nil
	}
	return nil, fmt.Errorf("%q is not 1.0, 2.0 or 2.0-deltas", version)
}

// compareFlags returns the flags of the regular comparison with a database.
func (o *Options) compareFlags() flags.Set {
	o.Exporter.Verify = make([]verify.Options, 1)
	v, needs := &o.Exporter.Verify[0], []string{"verify.url"}
	return flags.Set{
		{
			Name: "verify.url", Value: flags.String(&v.URL, ""), Of: "Verify[0] Verify[0].URL",
			Usage: "`URL` of a query API, without /api/v1, of a database that is compared with the metric log " +
				"every five minutes",
		},
		{
			Name: "verify.label", Value: flags.Map(&v.Labels), Of: "Verify[0].Labels", Needs: needs,
			Usage: "`NAME=VALUE` of a label of this instance's series in the database, such as job and instance; " +
				"repeatable",
		},
		{
			Name: "verify.config.file", Value: flags.Parsed(&v.Client, "", flags.ParseClient), Of: "Verify[0].Client",
			Needs: needs, Usage: flags.ClientUsage,
		},
	}.Under("Comparison with a database")
}

// DefaultListen is the default address of the pages.
const DefaultListen = "127.0.0.1:9719"

// Check returns the errors in the options of the exporters. It creates nothing and opens no file.
func (o *Options) Check() error { return o.flagged(o.exporter().Check()) }

// exporter returns the options of the exporters. It removes pushes and comparisons without a URL, because these flags
// were not given.
func (o *Options) exporter() exporter.Options {
	x := o.Exporter
	x.Push = slices.Clone(x.Push)
	if o.deltas {
		// OTLP is the last kind of push, see pushKinds.
		x.Push[len(x.Push)-1].Format = push.OTLPDelta
	}
	x.Push = slices.DeleteFunc(x.Push, func(p push.Options) bool { return p.URL == "" })
	x.Verify = slices.DeleteFunc(slices.Clone(x.Verify), func(v verify.Options) bool { return v.URL == "" })
	return x
}

// flagged returns an error of package exporter with the fields that the flags name in Flag.Of. It replaces the number
// of a push by the prefix of the flags of the push, because users do not see the number.
//
// For example, with --otlp.url as the only push, package exporter reports Push[0].URL, and flagged replaces it by
// otlp..URL, which --otlp.url has in Of.
func (o *Options) flagged(err error) error {
	var names []string
	for i, p := range o.Exporter.Push {
		if p.URL != "" {
			// names has two elements for each push, so half of its length is the number of the next push.
			names = append(names, fmt.Sprintf("Push[%d]", len(names)/2), pushKinds[i].prefix)
		}
	}
	replace := strings.NewReplacer(names...)
	var errs []error
	for _, e := range collector.OptionErrors(err) {
		errs = append(errs, &collector.OptionError{Package: e.Package, Field: replace.Replace(e.Field), Err: e.Err})
	}
	return errors.Join(errs...)
}

// Logger returns the logger for messages of the command. It ignores errors, because the flags have checked the level
// and the format.
func (o *Options) Logger(stderr io.Writer) *slog.Logger {
	level, format := promslog.NewLevel(), promslog.NewFormat()
	_, _ = level.Set(o.level), format.Set(o.format)
	return promslog.New(&promslog.Config{Level: level, Format: format, Writer: stderr})
}

// MetricLog returns the options of the metric log, for commands that open it without an Exporter.
func (o *Options) MetricLog(stderr io.Writer) metriclog.Options {
	log := o.Exporter.Log
	log.App, log.Logger = o.Exporter.App, o.Logger(stderr)
	return log
}

// LastLogged returns the last second of the metric log. It returns the zero time if there is no metric log or if it is
// empty.
func (o *Options) LastLogged(stderr io.Writer) (last time.Time, err error) {
	if o.Exporter.Log.Dir == "" {
		return last, nil
	}
	if last, err = metriclog.Last(o.MetricLog(stderr)); err != nil {
		err = fmt.Errorf("--metric-log.dir: %w", err)
	}
	return last, err
}
