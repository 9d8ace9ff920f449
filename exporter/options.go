package exporter

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/limitfile"
	"github.com/windowstat/windowstat/exporter/internal/gather"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/exporter/live"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/exporter/push"
	"github.com/windowstat/windowstat/exporter/sampler"
	"github.com/windowstat/windowstat/exporter/sentinellog"
	"github.com/windowstat/windowstat/exporter/verify"
)

// Namespace is the default prefix of all metric names.
const Namespace = table.Namespace

// DefaultDrain is the default of [Options].Drain.
const DefaultDrain = 10 * time.Second

// Options configure the exporters. The zero value enables the pages only. New fills in the namespace, the application,
// the log and the sampler of the parts; setting these fields of a part is an error.
type Options struct {
	// App is the name of the service in file names, on pages and in the label job. The default is the name of the
	// program.
	App string
	// Namespace is the prefix of all metric names. The default is windowstat.
	Namespace string
	// MetricsPath is the path of the page /metrics. The per-second page is at MetricsPath + "/seconds".
	MetricsPath string
	// Logger receives the errors of background work, each at most once a minute. The default is slog.Default.
	Logger *slog.Logger

	// Disabled turns windowstat off without a change to the code, for example by a variable that the service reads. The
	// Exporter then has a nil Collector: calls cost less than 5 ns with a kept handle and record nothing, middleware
	// returns the wrapped handler, and limits let every call pass. Nothing is logged, pushed or compared. The pages
	// respond with a comment and no samples, Metrics remains a handler, and Seconds and Live are nil. The other options
	// are checked as usual.
	Disabled bool

	// Collector configures the counting: windows, limits of memory, and the definition of exceptions.
	Collector collector.Options
	// Metrics configures the page of totals, /metrics.
	Metrics prom.Options
	// Seconds configures the per-second endpoint, /metrics/seconds.
	Seconds prom.SecondsOptions
	// Live configures the live page, /live/.
	Live live.Options

	// Log configures the metric log. It is off if Dir is empty.
	Log metriclog.Options
	// Sentinel configures the following of Sentinel's metric logs. It is off if Dir is empty. The per-second page and
	// the pushes then have the seconds of the logs, and not those of the Collector, which must count no calls. It
	// cannot be combined with Log, LimitsFile, Sampler and Verify, and there is no live page.
	Sentinel sentinellog.Options
	// LimitsFile is the path of a limits file, which is reloaded when it changes. Empty means no file.
	LimitsFile string
	// Sampler samples the metrics that the service counts with client_golang. It is off if Gatherer is nil. The sampled
	// seconds are on the per-second page and in every push.
	Sampler sampler.Options
	// Push lists the servers that receive every second. The default of the labels job and instance is App and the host
	// name, with the port of [Exporter.Serve].
	Push []push.Options
	// Verify lists databases that are compared with the metric log. It requires a log.
	Verify []verify.Options

	// Drain is the time that Run waits for calls in flight after its context is canceled: [DefaultDrain] if zero, no
	// time if negative. The same context may therefore shut down the server of the service.
	Drain time.Duration
}

var (
	validPath = regexp.MustCompile(`^(/[a-zA-Z0-9._~-]+)+$`)
	control   = func(r rune) bool { return r < ' ' || r == 0x7f }
)

// Check returns all invalid options as [collector.OptionError]s that name the field. The field of a part has a prefix,
// such as Push[0].URL. Check creates nothing and opens no file for writing; [New] reports a log directory that cannot
// be used.
func (o Options) Check() error {
	errs := o.checkReserved()
	o = o.filled()
	if len(o.App) > 100 || strings.ContainsFunc(o.App, control) || strings.ContainsAny(o.App, `/\`) {
		errs = append(errs, wrong("App",
			"%.120q: up to 100 bytes without slashes and control characters are allowed", o.App))
	}
	if !validPath.MatchString(o.MetricsPath) || path.Clean(o.MetricsPath) != o.MetricsPath {
		errs = append(errs, wrong("MetricsPath",
			"%.120q is not a path below / of letters, digits and ._~-, such as /metrics", o.MetricsPath))
	}
	for _, taken := range []string{"/-", "/live", "/debug"} {
		if o.MetricsPath == taken || strings.HasPrefix(o.MetricsPath, taken+"/") {
			errs = append(errs, wrong("MetricsPath", "%.120q: other pages are below %s/", o.MetricsPath, taken))
		}
	}
	if err := gather.CheckNamespace(o.Namespace); err != nil {
		errs = append(errs, wrong("Namespace", "%w", err))
		o.Namespace = Namespace // so that the other options can be checked
		o = o.filled()
	}
	part := func(field string, err error) { errs = append(errs, prefixed(field, err)...) }
	part("Collector", o.Collector.Check())
	part("Metrics", o.Metrics.Check())
	part("Seconds", o.Seconds.Check())
	part("Live", o.Live.Check())
	if o.Log.Dir != "" {
		part("Log", o.Log.Check())
	}
	if o.Sentinel.Dir != "" {
		part("Sentinel", o.Sentinel.Check())
		for field, is := range map[string]bool{
			"Log": o.Log.Dir != "", "LimitsFile": o.LimitsFile != "", "Sampler": o.Sampler.Gatherer != nil,
			"Verify": len(o.Verify) > 0,
		} {
			if is {
				errs = append(errs, wrong(field, "cannot be combined with Sentinel's logs"))
			}
		}
	}
	if o.LimitsFile != "" {
		_, err := limitfile.Read(o.LimitsFile)
		part("LimitsFile", err)
	}
	if o.Sampler.Gatherer != nil {
		part("Sampler", o.Sampler.Check())
	}
	for i, p := range o.Push {
		part(fmt.Sprintf("Push[%d]", i), p.Check())
	}
	for i, v := range o.Verify {
		field := fmt.Sprintf("Verify[%d]", i)
		if o.Log.Dir == "" {
			errs = append(errs, wrong(field, "needs a metric log"))
		}
		part(field, v.Check(o.Namespace))
	}
	return errors.Join(errs...)
}

// checkReserved reports fields that are set although New fills them in.
func (o *Options) checkReserved() (errs []error) {
	set := func(is bool, field, instead string) {
		if is {
			errs = append(errs, wrong(field, "is set by New; %s instead", instead))
		}
	}
	set(o.Log.App != "", "Log.App", "set App")
	set(!o.Collector.After.IsZero() && o.Log.Dir != "", "Collector.After", "set Log.Dir")
	set(o.Metrics.Namespace != "", "Metrics.Namespace", "set Namespace")
	set(o.Seconds.Namespace != "", "Seconds.Namespace", "set Namespace")
	set(o.Sentinel.Namespace != "", "Sentinel.Namespace", "set Namespace")
	set(o.Seconds.Log != nil, "Seconds.Log", "set Log")
	set(o.Seconds.Sampler != nil, "Seconds.Sampler", "set Sampler")
	targets := map[string]int{}
	for i, push := range o.Push {
		field := fmt.Sprintf("Push[%d]", i)
		set(push.Namespace != "", field+".Namespace", "set Namespace")
		set(push.Log != nil, field+".Log", "set Log")
		set(push.Sampler != nil, field+".Sampler", "set Sampler")
		target := fmt.Sprint(push.URL, push.Labels) // fmt prints maps in key order
		if first, ok := targets[target]; ok {
			errs = append(errs, wrong(field,
				"has the same URL and labels as Push[%d]: each would overwrite the samples of the other", first))
		}
		targets[target] = i
	}
	return errs
}

// filled returns the options with defaults and with the values that the parts share. It does not change slices and maps
// of the caller.
func (o Options) filled() Options {
	o.App = cmp.Or(o.App, filepath.Base(os.Args[0]))
	o.Namespace = cmp.Or(o.Namespace, Namespace)
	o.MetricsPath = cmp.Or(o.MetricsPath, "/metrics")
	o.Logger = cmp.Or(o.Logger, slog.Default())
	o.Drain = cmp.Or(o.Drain, DefaultDrain)
	o.Metrics.Namespace, o.Seconds.Namespace, o.Sentinel.Namespace = o.Namespace, o.Namespace, o.Namespace
	o.Log.App = o.App
	o.Live.Title = cmp.Or(o.Live.Title, o.App)
	for _, logger := range []**slog.Logger{&o.Log.Logger, &o.Sampler.Logger, &o.Seconds.Logger, &o.Sentinel.Logger} {
		*logger = cmp.Or(*logger, o.Logger)
	}
	o.Push = slices.Clone(o.Push)
	for i := range o.Push {
		x := &o.Push[i]
		labels := map[string]string{"job": o.App, "instance": instance(nil)}
		maps.Copy(labels, x.Labels)
		x.Labels, x.Namespace, x.Logger = labels, o.Namespace, cmp.Or(x.Logger, o.Logger)
	}
	o.Verify = slices.Clone(o.Verify)
	for i := range o.Verify {
		o.Verify[i].Logger = cmp.Or(o.Verify[i].Logger, o.Logger)
	}
	return o
}

// instance returns the host name of this process, with the port if address has one.
func instance(address net.Addr) string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	if address != nil {
		if _, port, err := net.SplitHostPort(address.String()); err == nil {
			return net.JoinHostPort(host, port)
		}
	}
	return host
}

// wrong returns an error about a field.
func wrong(field, format string, args ...any) error {
	return &collector.OptionError{Package: "exporter", Field: field, Err: fmt.Errorf(format, args...)}
}

// prefixed returns the errors of a part's options with the field name of the part as a prefix.
func prefixed(field string, err error) (errs []error) {
	for _, e := range collector.OptionErrors(err) {
		errs = append(errs, &collector.OptionError{
			Package: "exporter", Field: strings.TrimSuffix(field+"."+e.Field, "."), Err: e.Err,
		})
	}
	return errs
}
