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
	"github.com/windowstat/windowstat/exporter/verify"
)

// Namespace is the prefix of all names unless [Options] say otherwise.
const Namespace = table.Namespace

// DefaultDrain is what [Options].Drain is if it is zero.
const DefaultDrain = 10 * time.Second

// Options say which ways out there are. The zero value has the pages, and nothing else. What New fills in itself (the
// namespace, application, log and sampler of the parts) is a mistake to set there, too.
type Options struct {
	// App is the service's name: in file names, on pages and as the label job. The program's name if empty.
	App string
	// Namespace is the prefix of all names, [Namespace] if empty.
	Namespace string
	// MetricsPath is the path of the page /metrics; the per-second page is at /seconds below it.
	MetricsPath string
	// Logger receives what goes wrong in the background, once and not each second; slog.Default if nil.
	Logger *slog.Logger

	Collector collector.Options   // the windows, the limits of memory, what an exception is
	Metrics   prom.Options        // the page /metrics
	Seconds   prom.SecondsOptions // the page /metrics/seconds
	Live      live.Options        // the page /live/

	// Log is the metric log; there is none without a Dir.
	Log metriclog.Options
	// LimitsFile is a file of limits, which is followed; none if empty.
	LimitsFile string
	// Sampler samples what the service counts with client_golang; there is none without a Gatherer. Its seconds are on the
	// per-second page and in every push.
	Sampler sampler.Options
	// Push has the servers that every second is pushed to. The labels job and instance are App and the host's name, with the port
	// where [Exporter.Serve] knows it, unless they are given.
	Push []push.Options
	// Verify are databases that are compared with the log, which is needed.
	Verify []verify.Options

	// Drain is how long Run waits, once its context has ended, for calls that are in flight: [DefaultDrain] if zero, not at all if
	// negative. So the same context may end the server of the service.
	Drain time.Duration
}

var (
	validPath = regexp.MustCompile(`^(/[a-zA-Z0-9._~-]+)+$`)
	control   = func(r rune) bool { return r < ' ' || r == 0x7f }
)

// Check returns everything that is wrong with the options, as [collector.OptionError]s with the names of their fields: one of a part
// has the part's field before it, such as Push[0].URL. It makes nothing, and opens no file for writing: what is wrong with the log's
// directory shows in [New].
func (o Options) Check() error {
	errs := o.twice()
	o = o.filled()
	if len(o.App) > 100 || strings.ContainsFunc(o.App, control) || strings.ContainsAny(o.App, `/\`) {
		errs = append(errs, wrong("App", "%.120q: up to 100 bytes without slashes and control characters are allowed", o.App))
	}
	if !validPath.MatchString(o.MetricsPath) || path.Clean(o.MetricsPath) != o.MetricsPath {
		errs = append(errs, wrong("MetricsPath", "%.120q is not a path below / of letters, digits and ._~-, such as /metrics", o.MetricsPath))
	}
	for _, taken := range []string{"/-", "/live", "/debug"} {
		if o.MetricsPath == taken || strings.HasPrefix(o.MetricsPath, taken+"/") {
			errs = append(errs, wrong("MetricsPath", "%.120q: other pages are below %s/", o.MetricsPath, taken))
		}
	}
	if err := gather.CheckNamespace(o.Namespace); err != nil {
		errs = append(errs, wrong("Namespace", "%w", err))
		o.Namespace = Namespace // to see what else is wrong
		o = o.filled()
	}
	part := func(field string, err error) { errs = append(errs, within(field, err)...) }
	part("Collector", o.Collector.Check())
	part("Metrics", o.Metrics.Check())
	part("Seconds", o.Seconds.Check())
	part("Live", o.Live.Check())
	if o.Log.Dir != "" {
		part("Log", o.Log.Check())
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
			errs = append(errs, wrong(field, "there is no metric log to compare with"))
		}
		part(field, v.Check(o.Namespace))
	}
	return errors.Join(errs...)
}

// twice finds what was set that New fills in itself.
func (o *Options) twice() (errs []error) {
	set := func(is bool, field, instead string) {
		if is {
			errs = append(errs, wrong(field, "is filled in by New; %s", instead))
		}
	}
	set(o.Log.App != "", "Log.App", "App is the place for it")
	set(!o.Collector.After.IsZero() && o.Log.Dir != "", "Collector.After", "the log says where it ends")
	set(o.Metrics.Namespace != "", "Metrics.Namespace", "Namespace is the place for it")
	set(o.Seconds.Namespace != "", "Seconds.Namespace", "Namespace is the place for it")
	set(o.Seconds.Log != nil, "Seconds.Log", "Log is the place for it")
	set(o.Seconds.Sampler != nil, "Seconds.Sampler", "Sampler is the place for it")
	targets := map[string]int{}
	for i, push := range o.Push {
		field := fmt.Sprintf("Push[%d]", i)
		set(push.Namespace != "", field+".Namespace", "Namespace is the place for it")
		set(push.Log != nil, field+".Log", "Log is the place for it")
		set(push.Sampler != nil, field+".Sampler", "Sampler is the place for it")
		target := fmt.Sprint(push.URL, push.Labels) // a map is printed in order
		if first, ok := targets[target]; ok {
			errs = append(errs, wrong(field, "has the URL and the labels of Push[%d]: one would overwrite what the other writes", first))
		}
		targets[target] = i
	}
	return errs
}

// filled returns the options with defaults, and with what the parts have in common. The slices and maps of the caller stay as they
// are.
func (o Options) filled() Options {
	o.App = cmp.Or(o.App, filepath.Base(os.Args[0]))
	o.Namespace = cmp.Or(o.Namespace, Namespace)
	o.MetricsPath = cmp.Or(o.MetricsPath, "/metrics")
	o.Logger = cmp.Or(o.Logger, slog.Default())
	o.Drain = cmp.Or(o.Drain, DefaultDrain)
	o.Metrics.Namespace, o.Seconds.Namespace = o.Namespace, o.Namespace
	o.Log.App = o.App
	o.Live.Title = cmp.Or(o.Live.Title, o.App)
	for _, logger := range []**slog.Logger{&o.Log.Logger, &o.Sampler.Logger, &o.Seconds.Logger} {
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

// instance names this process by host and, if it listens, port.
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

// wrong is an error about a field.
func wrong(field, format string, args ...any) error {
	return &collector.OptionError{Package: "exporter", Field: field, Err: fmt.Errorf(format, args...)}
}

// within returns the errors of a part's options, with the field of the part before theirs.
func within(field string, err error) (errs []error) {
	for _, e := range collector.OptionErrors(err) {
		errs = append(errs, &collector.OptionError{Package: "exporter", Field: strings.TrimSuffix(field+"."+e.Field, "."), Err: e.Err})
	}
	return errs
}
