package push

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/gather"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/exporter/sampler"
	"github.com/windowstat/windowstat/internal/redact"
)

// Defaults of [Options].
const (
	DefaultInterval   = time.Second
	DefaultTimeout    = 30 * time.Second
	DefaultMaxSamples = 10_000
	DefaultDrain      = 10 * time.Second
)

// Options configures a [Pusher]. URL and Labels are required.
type Options struct {
	// URL is the endpoint, such as http://prometheus:9090/api/v1/write.
	URL string
	// Format is the protocol and encoding, [RemoteWrite] if nil.
	Format Format
	// Labels are added to every series. job and instance are required, because two processes without them would write
	// to the same series. With OTLP they are also the resource's service.name and service.instance.id. If a series has
	// a label with the same name, that label gets the prefix exported_.
	Labels map[string]string
	// Namespace is the prefix of all names, windowstat if empty.
	Namespace string
	// Metrics are full names such as windowstat_persecond_pass, and Resources are names of resources. Only these are
	// sent. If empty, all metrics or all resources are sent.
	Metrics, Resources []string
	// Histogram adds the histogram of the response times of each second, windowstat_persecond_rt_distribution_seconds,
	// or with [OTLP] the cumulative one, windowstat_persecond_rt_seconds. Histograms are sent in separate requests. If
	// a server responds that it does not accept native histograms, it receives no further histograms, which is logged.
	Histogram bool
	// Sampler adds all series of client_golang that it samples. If nil, none are added.
	Sampler *sampler.Sampler
	// Log is the metric log of the process, a *metriclog.Writer, or nil. With a log, the next process sends the seconds
	// that this one did not send, even after a kill, and an outage may be longer than the Collector's history. The log
	// must end after Run.
	Log Log
	// Client sends the requests. Set its Transport for authorization, TLS or a proxy. It is copied, and redirects are
	// not followed. If nil, the client uses the proxy of the environment, without authorization.
	Client *http.Client
	// Interval is the time between pushes, in whole seconds, at most half of the Collector's history; [DefaultInterval]
	// if zero. Seconds that are sent together take less space.
	Interval time.Duration
	// Timeout limits one request, [DefaultTimeout] if zero.
	Timeout time.Duration
	// MaxSamples is the approximate maximum number of samples in a request, [DefaultMaxSamples] if zero. A series and
	// all its seconds stay in one request. A request that the server or a proxy finds too large (413) is refused.
	MaxSamples int
	// Drain limits the time for which Run continues to send after its context has ended, [DefaultDrain] if zero.
	Drain time.Duration
	// Logger receives a message when pushing fails, when it works again, and when samples are refused; slog.Default if
	// nil.
	Logger *slog.Logger
}

// Log is the part of a metric log that a [Pusher] uses. metriclog.Writer implements it.
type Log interface {
	seconds.Log
	// StateFile returns the path of a file with this name that belongs to the log. It returns each name only once.
	StateFile(name string) (path string, err error)
	// Written returns the Unix time of the first second whose rows may not be complete in the log. The rows of all
	// earlier seconds are final.
	Written() int64
}

// defaults sets the fields that are zero to their defaults.
func (o *Options) defaults() {
	o.Format = cmp.Or(o.Format, RemoteWrite)
	o.Namespace, o.MaxSamples = cmp.Or(o.Namespace, table.Namespace), cmp.Or(o.MaxSamples, DefaultMaxSamples)
	o.Interval, o.Timeout = cmp.Or(o.Interval, DefaultInterval), cmp.Or(o.Timeout, DefaultTimeout)
	o.Drain = cmp.Or(o.Drain, DefaultDrain)
	o.Logger = cmp.Or(o.Logger, slog.Default())
}

// Check returns all errors of the options, as [collector.OptionError]s.
func (o Options) Check() error {
	o.defaults()
	var errs []error
	wrong := func(field, format string, args ...any) {
		errs = append(errs, &collector.OptionError{Package: "push", Field: field, Err: fmt.Errorf(format, args...)})
	}
	if _, err := redact.ParseURL(o.URL); err != nil {
		wrong("URL", "%w", err)
	}
	errs = append(errs, CheckLabels(o.Labels))
	for _, d := range []struct {
		field string
		time.Duration
	}{{"Interval", o.Interval}, {"Timeout", o.Timeout}, {"Drain", o.Drain}} {
		if d.Duration < 0 || d.Duration > time.Hour {
			wrong(d.field, "%v; must be between 0 and 1h", d.Duration)
		}
	}
	if o.Interval%time.Second != 0 {
		wrong("Interval", "%v; must be whole seconds", o.Interval)
	}
	if o.MaxSamples < 1 {
		wrong("MaxSamples", "%d; must be at least 1", o.MaxSamples)
	}
	if err := gather.CheckNamespace(o.Namespace); err != nil {
		wrong("Namespace", "%w", err)
	} else {
		known := append(seconds.Names(o.Namespace, false), seconds.SentinelNames(o.Namespace)...)
		for _, name := range o.Metrics {
			if !slices.Contains(known, name) {
				wrong("Metrics", "%.70q is not a per-second metric", name)
			}
		}
	}
	return errors.Join(errs...)
}
