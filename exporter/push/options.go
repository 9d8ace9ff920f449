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

// Options configure a [Pusher]. URL and Labels are required.
type Options struct {
	// URL is the endpoint, such as http://prometheus:9090/api/v1/write.
	URL string
	// Format is how seconds are sent there, [RemoteWrite] if nil.
	Format Format
	// Labels are added to every series. job and instance are required: without them two processes would write to the same series.
	// By OTLP they are also the resource's service.name and service.instance.id. A label of a series with the same name gets the prefix
	// exported_.
	Labels map[string]string
	// Namespace is the prefix of all names, windowstat if empty.
	Namespace string
	// Metrics are full names, such as windowstat_persecond_pass, and Resources names of resources: only these are sent.
	// Everything is if empty.
	Metrics, Resources []string
	// Histogram adds the histogram of the response times of each second, windowstat_persecond_rt_distribution_seconds, or with [OTLP]
	// the cumulative one, windowstat_persecond_rt_seconds. They have requests of their own, beside the others. A server that says that it
	// takes no native histograms gets none from then on, which is logged.
	Histogram bool
	// Sampler adds series of client_golang, all of them; none if nil.
	Sampler *sampler.Sampler
	// Log is the metric log of the process, a *metriclog.Writer; none if nil. With it the next process sends what this one could not,
	// killed or not, and an outage may be longer than the Collector's history. It must end after Run.
	Log Log
	// Client sends the requests: set its Transport for authorization, TLS, a proxy. It is copied, and redirects are not followed. If
	// nil, it is one without them, with the proxy of the environment.
	Client *http.Client
	// Interval is the time between pushes, in whole seconds, at most half of the Collector's history; [DefaultInterval] if zero.
	// Seconds that are sent together take less space.
	Interval time.Duration
	// Timeout limits one request, [DefaultTimeout] if zero.
	Timeout time.Duration
	// MaxSamples is about how many samples a request has at most, [DefaultMaxSamples] if zero; a series with all its seconds stays
	// together. A request that the server or a proxy finds too large (413) is refused.
	MaxSamples int
	// Drain limits how long Run sends after its context has ended, [DefaultDrain] if zero.
	Drain time.Duration
	// Logger receives a message when pushing fails, when it works again, and when samples are refused; slog.Default if nil.
	Logger *slog.Logger
}

// Log is what a [Pusher] needs of a metric log; metriclog.Writer implements it.
type Log interface {
	seconds.Log
	// StateFile returns the path for a file of this name that belongs to the log. It returns each name once.
	StateFile(name string) (path string, err error)
	// Written returns the Unix time before which all seconds are in the log that it will ever have.
	Written() int64
}

func (o *Options) defaults() {
	o.Format = cmp.Or(o.Format, RemoteWrite)
	o.Namespace, o.MaxSamples = cmp.Or(o.Namespace, table.Namespace), cmp.Or(o.MaxSamples, DefaultMaxSamples)
	o.Interval, o.Timeout, o.Drain = cmp.Or(o.Interval, DefaultInterval), cmp.Or(o.Timeout, DefaultTimeout), cmp.Or(o.Drain, DefaultDrain)
	o.Logger = cmp.Or(o.Logger, slog.Default())
}

// Check returns everything that is wrong with the options, as [collector.OptionError]s.
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
			wrong(d.field, "%v; up to an hour is allowed", d.Duration)
		}
	}
	if o.Interval%time.Second != 0 {
		wrong("Interval", "%v; whole seconds are allowed", o.Interval)
	}
	if o.MaxSamples < 1 {
		wrong("MaxSamples", "%d; at least 1 is needed", o.MaxSamples)
	}
	if err := gather.CheckNamespace(o.Namespace); err != nil {
		wrong("Namespace", "%w", err)
	} else {
		known := seconds.Names(o.Namespace, false)
		for _, name := range o.Metrics {
			if !slices.Contains(known, name) {
				wrong("Metrics", "%.70q is no metric of single seconds", name)
			}
		}
	}
	return errors.Join(errs...)
}
