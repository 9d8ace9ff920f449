// Package push sends sealed seconds to a server over HTTP, each once and in order. It is what the ways out that push
// share; they differ in how a request's body is written.
package push

import (
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/prometheus/common/config"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/gather"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
)

// What [Options] are if they do not say.
const (
	DefaultInterval   = time.Second
	DefaultTimeout    = 30 * time.Second
	DefaultMaxSamples = 10_000
	DefaultDrain      = 10 * time.Second
)

// Options configure a [Pusher].
type Options struct {
	// URL is where to send to.
	URL string
	// Labels are added to every series, job and instance at least: without them two processes would write into one series.
	// A label of a series that has the name of one of them becomes exported_ and that name.
	Labels map[string]string
	// Namespace is the prefix of all names, [table.Namespace] if empty.
	Namespace string
	// Streams are sent besides the resources, see [seconds.Stream].
	Streams []seconds.Stream
	// Selection is what to send of the resources, everything if empty. Of Streams everything is sent.
	Selection seconds.Selection
	// Client configures the connection: authorization, TLS, a proxy, headers. Redirects are not followed.
	Client config.HTTPClientConfig
	// Interval is how often to send, every second if zero. Seconds that are sent together take less room.
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

// check finds everything that is wrong. The Collector may be nil.
func (o *Options) check(c *collector.Collector) error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	u, err := url.Parse(o.URL)
	switch {
	case err != nil:
		wrong("URL %q: %w", o.URL, errors.Unwrap(err))
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		wrong("URL %q is not http:// or https:// with a host", o.URL)
	case u.User != nil:
		wrong("URL has a user; Client is the place for it")
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
		wrong("Interval is %v; with a history of %v half of that is allowed", o.Interval, c.History())
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
