package vmpush

import (
	"log/slog"
	"time"

	"github.com/prometheus/common/config"

	"github.com/windowstat/windowstat/exporter/internal/push"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/exporter/sampler"
)

// Defaults of [Options].
const (
	DefaultInterval   = push.DefaultInterval
	DefaultTimeout    = push.DefaultTimeout
	DefaultMaxSamples = push.DefaultMaxSamples
	DefaultDrain      = push.DefaultDrain
)

// Options configure a [Pusher]. URL and Labels are required.
type Options struct {
	// URL is the import endpoint, such as http://victoria:8428/api/v1/import/prometheus.
	URL string
	// Labels are added to every series. job and instance are required: without them two processes would write to the same series.
	// A label of a series with the same name gets the prefix exported_.
	Labels map[string]string
	// Namespace is the prefix of all names, windowstat if empty.
	Namespace string
	// Metrics are full names, such as windowstat_persecond_pass, and Resources names of resources: only these are sent.
	// Everything is if empty.
	Metrics, Resources []string
	// Histogram adds the histogram of the response times of each second, windowstat_persecond_rt_distribution_seconds, by vmrange:
	// a sample for each bucket that is not empty, and two more.
	Histogram bool
	// Sampler adds series of client_golang, all of them; none if nil.
	Sampler *sampler.Sampler
	// Log is the metric log of the process; none if nil. With it the next process sends what this one could not, killed or not,
	// and an outage may be longer than the Collector's history. It must end after Run, and must not be one that has PID.
	Log *metriclog.Writer
	// Client configures the connection: authorization, TLS, a proxy, headers. Redirects are not followed.
	Client config.HTTPClientConfig
	// Interval is the time between pushes, in whole seconds, at most half of the Collector's history; [DefaultInterval] if zero.
	// Seconds that are sent together take less space.
	Interval time.Duration
	// Timeout limits one request, [DefaultTimeout] if zero.
	Timeout time.Duration
	// MaxSamples is the most samples in a request, [DefaultMaxSamples] if zero; a series with all its seconds stays together. A
	// request that the server or a proxy finds too large (413) is refused.
	MaxSamples int
	// Drain limits how long Run sends after its context has ended, [DefaultDrain] if zero.
	Drain time.Duration
	// Logger receives a message when pushing fails, when it works again, and when samples are refused; slog.Default if nil.
	Logger *slog.Logger
}

func (o *Options) push() push.Options {
	p := push.Options{
		URL: o.URL, Labels: o.Labels, Namespace: o.Namespace, Client: o.Client, Interval: o.Interval, Timeout: o.Timeout,
		MaxSamples: o.MaxSamples, Drain: o.Drain, Logger: o.Logger,
		Selection: seconds.Selection{Metrics: o.Metrics, Resources: o.Resources},
	}
	if o.Histogram {
		p.Selection.Histogram = seconds.Single
	}
	if o.Log != nil {
		p.Log = o.Log
	}
	if o.Sampler != nil {
		p.Streams = []seconds.Stream{o.Sampler.Stream()}
	}
	return p
}
