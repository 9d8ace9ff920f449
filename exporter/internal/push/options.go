// Package push sends sealed seconds to a server over HTTP, each once and in order. remote and vmpush share it; they differ in
// the encoding.
package push

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/windowstat/windowstat/internal/bare"

	"github.com/prometheus/common/config"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/gather"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
)

// Defaults of [Options].
const (
	DefaultInterval   = time.Second
	DefaultTimeout    = 30 * time.Second
	DefaultMaxSamples = 10_000
	DefaultDrain      = 10 * time.Second
)

// Options configure a [Pusher].
type Options struct {
	// URL is the endpoint.
	URL string
	// Labels are added to every series. job and instance are required: without them two processes would write to the same series.
	// A label of a series with the same name gets the prefix exported_.
	Labels map[string]string
	// Namespace is the prefix of all names, [table.Namespace] if empty.
	Namespace string
	// Streams are sent besides the resources.
	Streams []seconds.Stream
	// Selection selects samples of the resources. Streams are always sent as a whole.
	Selection seconds.Selection
	// Client configures the connection: authorization, TLS, a proxy, headers. Redirects are not followed.
	Client config.HTTPClientConfig
	// Interval is the time between pushes, [DefaultInterval] if zero. Seconds that are sent together take less space.
	Interval time.Duration
	// Timeout limits one request, [DefaultTimeout] if zero.
	Timeout time.Duration
	// MaxSamples is the most samples in a request, [DefaultMaxSamples] if zero; a series with all its seconds stays together. A
	// request that the server or a proxy finds too large (413) is refused.
	MaxSamples int
	// Drain limits how long Run sends after its context has ended, [DefaultDrain] if zero.
	Drain time.Duration
	// Log keeps the position for the next process, and has the seconds that are not in the history; none if nil.
	Log Log
	// Logger receives a message when pushing fails, when it works again, and when samples are refused; slog.Default if nil.
	Logger *slog.Logger
}

func (o *Options) defaults() {
	if o.Namespace == "" {
		o.Namespace = table.Namespace
	}
	if o.Interval == 0 {
		o.Interval = DefaultInterval
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.MaxSamples == 0 {
		o.MaxSamples = DefaultMaxSamples
	}
	if o.Drain == 0 {
		o.Drain = DefaultDrain
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
}

// check returns everything that is wrong. The Collector may be nil.
func (o *Options) check(c *collector.Collector) error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if _, err := bare.Server(o.URL); err != nil {
		errs = append(errs, err)
	}
	if err := CheckLabels(o.Labels); err != nil {
		errs = append(errs, err)
	}
	for name, d := range map[string]time.Duration{"Interval": o.Interval, "Timeout": o.Timeout, "Drain": o.Drain} {
		if d < 0 || d > time.Hour {
			wrong("%s is %v; up to an hour is allowed", name, d)
		}
	}
	if c != nil && o.Interval > c.History()/2 {
		wrong("Interval is %v; at most half of the history of %v is allowed", o.Interval, c.History())
	}
	if o.Interval%time.Second != 0 {
		wrong("Interval is %v; whole seconds are allowed", o.Interval)
	}
	if o.MaxSamples < 1 {
		wrong("MaxSamples is %d; at least 1 is needed", o.MaxSamples)
	}
	if err := o.Client.Validate(); err != nil {
		wrong("Client: %w", err)
	}
	if err := gather.CheckNamespace(o.Namespace); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
