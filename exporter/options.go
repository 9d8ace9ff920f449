package exporter

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/gather"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/exporter/live"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/exporter/remote"
	"github.com/windowstat/windowstat/exporter/sampler"
	"github.com/windowstat/windowstat/exporter/verify"
	"github.com/windowstat/windowstat/exporter/vmpush"
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
	// Logger is told what goes wrong in the background, once and not each second; slog.Default if nil.
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
	// RemoteWrite and VictoriaMetrics are servers that every second is pushed to. The labels job and instance are App and
	// the host's name, with the port where [Exporter.Serve] knows it, unless they are given.
	RemoteWrite     []remote.Options
	VictoriaMetrics []vmpush.Options
	// Verify are databases that are compared with the log, which is needed.
	Verify []verify.Options

	// Drain is how long Run waits, once it is told to end, for calls that are in flight: [DefaultDrain] if zero, not at all if
	// negative. So the server of the service may be told to end by the same context.
	Drain time.Duration
}

var (
	validPath = regexp.MustCompile(`^(/[a-zA-Z0-9._~-]+)+$`)
	control   = func(r rune) bool { return r < ' ' || r == 0x7f }
)

// Check returns everything that is wrong with the options, each mistake with the name of its field. It opens no file for
// writing, makes no directory and starts nothing: what is wrong with the log's directory shows in [New].
func (o Options) Check() error {
	errs := o.twice()
	o.defaults()
	if len(o.App) > 100 || strings.ContainsFunc(o.App, control) || strings.ContainsAny(o.App, `/\`) {
		errs = append(errs, fmt.Errorf("exporter: App %.120q: up to 100 bytes without slashes and control characters are allowed", o.App))
	}
	if err := gather.CheckNamespace(o.Namespace); err != nil {
		errs = append(errs, fmt.Errorf("exporter: %w", err))
		o.Namespace = Namespace // to see what else is wrong
	}
	if !validPath.MatchString(o.MetricsPath) || path.Clean(o.MetricsPath) != o.MetricsPath {
		errs = append(errs, fmt.Errorf("exporter: MetricsPath %.120q is not a path below / of letters, digits and ._~-, such as /metrics", o.MetricsPath))
	}
	_, err := build(o, true)
	return errors.Join(append(errs, err)...)
}

// twice finds what was set that New fills in itself.
func (o *Options) twice() (errs []error) {
	set := func(is bool, field, instead string) {
		if is {
			errs = append(errs, fmt.Errorf("exporter: %s: is filled in by New; %s", field, instead))
		}
	}
	set(o.Log.App != "", "Log.App", "App is the place for it")
	set(!o.Collector.After.IsZero() && o.Log.Dir != "", "Collector.After", "the log says where it ends")
	set(o.Metrics.Namespace != "", "Metrics.Namespace", "Namespace is the place for it")
	set(o.Seconds.Namespace != "", "Seconds.Namespace", "Namespace is the place for it")
	set(o.Seconds.Log != nil, "Seconds.Log", "Log is the place for it")
	set(o.Seconds.Sampler != nil, "Seconds.Sampler", "Sampler is the place for it")
	for i, push := range o.RemoteWrite {
		set(push.Namespace != "", fmt.Sprintf("RemoteWrite[%d].Namespace", i), "Namespace is the place for it")
		set(push.Log != nil, fmt.Sprintf("RemoteWrite[%d].Log", i), "Log is the place for it")
		set(push.Sampler != nil, fmt.Sprintf("RemoteWrite[%d].Sampler", i), "Sampler is the place for it")
	}
	for i, push := range o.VictoriaMetrics {
		set(push.Namespace != "", fmt.Sprintf("VictoriaMetrics[%d].Namespace", i), "Namespace is the place for it")
		set(push.Log != nil, fmt.Sprintf("VictoriaMetrics[%d].Log", i), "Log is the place for it")
		set(push.Sampler != nil, fmt.Sprintf("VictoriaMetrics[%d].Sampler", i), "Sampler is the place for it")
	}
	return errs
}

func (o *Options) defaults() {
	if o.App == "" {
		o.App = filepath.Base(os.Args[0])
	}
	if o.Namespace == "" {
		o.Namespace = Namespace
	}
	if o.MetricsPath == "" {
		o.MetricsPath = "/metrics"
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Drain == 0 {
		o.Drain = DefaultDrain
	}
}

// fill gives the parts what they have in common. The slices and maps of the caller stay as they are.
func (o *Options) fill() {
	o.Metrics.Namespace, o.Seconds.Namespace = o.Namespace, o.Namespace
	o.Log.App = o.App
	if o.Live.Title == "" {
		o.Live.Title = o.App
	}
	for _, logger := range []**slog.Logger{&o.Log.Logger, &o.Sampler.Logger, &o.Seconds.Logger} {
		if *logger == nil {
			*logger = o.Logger
		}
	}
	push := func(labels *map[string]string, namespace *string, logger **slog.Logger) {
		all := map[string]string{"job": o.App, "instance": instance(nil)}
		for name, value := range *labels {
			all[name] = value
		}
		*labels, *namespace = all, o.Namespace
		if *logger == nil {
			*logger = o.Logger
		}
	}
	o.RemoteWrite = append([]remote.Options(nil), o.RemoteWrite...)
	for i := range o.RemoteWrite {
		x := &o.RemoteWrite[i]
		push(&x.Labels, &x.Namespace, &x.Logger)
	}
	o.VictoriaMetrics = append([]vmpush.Options(nil), o.VictoriaMetrics...)
	for i := range o.VictoriaMetrics {
		x := &o.VictoriaMetrics[i]
		push(&x.Labels, &x.Namespace, &x.Logger)
	}
	o.Verify = append([]verify.Options(nil), o.Verify...)
	for i := range o.Verify {
		if x := &o.Verify[i]; x.Logger == nil {
			x.Logger = o.Logger
		}
	}
}

// instance names this process by host and, if it listens, port.
func instance(address net.Addr) string {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	if address == nil {
		return host
	}
	_, port, err := net.SplitHostPort(address.String())
	if err != nil {
		return host
	}
	return net.JoinHostPort(host, port)
}

// fieldError is an error of a part, which may have several lines, each of which gets the name of the field.
type fieldError struct {
	field string
	err   error
}

// Unwrap makes errors.Is and errors.As find the part's error.
func (e *fieldError) Unwrap() error { return e.err }

// Error puts the field in the place of the part's package.
func (e *fieldError) Error() string {
	lines := strings.Split(e.err.Error(), "\n")
	for i, line := range lines {
		if name, rest, ok := strings.Cut(line, ": "); ok && partName.MatchString(name) {
			line = rest
		}
		lines[i] = "exporter: " + e.field + ": " + line
	}
	return strings.Join(lines, "\n")
}

// partName are the packages of the parts, as they stand before their errors.
var partName = regexp.MustCompile(`^(collector|metriclog|prom|live|remote|vmpush|sampler|verify)$`)
