package remote

import (
	"log/slog"
	"time"

	"github.com/prometheus/common/config"

	"github.com/windowstat/windowstat/exporter/internal/push"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/sampler"
)

// Defaults of [Options].
const (
	DefaultInterval   = push.DefaultInterval
	DefaultTimeout    = push.DefaultTimeout
	DefaultMaxSamples = push.DefaultMaxSamples
	DefaultDrain      = push.DefaultDrain
)

// Options configure a [Pusher]. URL and Labels are needed.
type Options struct {
	// URL is where to send to, the remote write endpoint.
	URL string
	// Labels are added to every series. job and instance are needed: without them two processes would write into one series.
	// A label of a series that has the name of one of them becomes exported_ and that name.
	Labels map[string]string
	// Namespace is the prefix of all names, windowstat if empty.
	Namespace string
	// Metrics are full names, such as windowstat_persecond_pass, and Resources names of resources: only these are sent. None
	// is all.
	Metrics, Resources []string
	// Sampler has series of client_golang, which are all sent, too; none if nil.
	Sampler *sampler.Sampler
	// Client configures the connection: authorization, TLS, a proxy, headers. Redirects are not followed.
	Client config.HTTPClientConfig
	// Interval is how often to send, in whole seconds, [DefaultInterval] if zero. Seconds that are sent together take less
	// room. It must not be longer than half of the Collector's history.
	Interval time.Duration
	// Timeout is how long one request may take, [DefaultTimeout] if zero.
	Timeout time.Duration
	// MaxSamples is how many samples a request has, [DefaultMaxSamples] if zero; a series with all its seconds stays together.
	MaxSamples int
	// Drain is how long Run goes on sending when its context has ended, [DefaultDrain] if zero.
	Drain time.Duration
	// Logger is told when sending begins to fail, when it works again, and what was refused; slog.Default if nil.
	Logger *slog.Logger
}

func (o *Options) push() push.Options {
	p := push.Options{
		URL: o.URL, Labels: o.Labels, Namespace: o.Namespace, Client: o.Client, Interval: o.Interval, Timeout: o.Timeout,
		MaxSamples: o.MaxSamples, Drain: o.Drain, Logger: o.Logger,
		Selection: seconds.Selection{Metrics: o.Metrics, Resources: o.Resources},
	}
	if o.Sampler != nil {
		p.Streams = []seconds.Stream{o.Sampler.Stream()}
	}
	return p
}
