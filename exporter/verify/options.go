package verify

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/config"

	"github.com/windowstat/windowstat/exporter/backfill"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/internal/bare"
)

// Defaults of [Options].
const (
	DefaultTimeout = 30 * time.Second
	DefaultDelay   = time.Minute
	// For a [Checker].
	DefaultEvery        = 5 * time.Minute
	DefaultWindow       = 15 * time.Minute
	DefaultCheckerDelay = 15 * time.Minute
)

// Options say what database to read, and what of it. URL and Labels are required.
type Options struct {
	// URL is what comes before /api/v1/query: http://prometheus:9090, http://mimir/prometheus, or that of a tenant,
	// http://vmselect:8481/select/0/prometheus. A query is kept.
	URL string
	// Labels select the series of one instance, by job and instance and what else is needed.
	Labels map[string]string
	// Metrics are full names of metrics in the log. If empty, it is those that the database has of the instance.
	Metrics []string
	// Client configures the connection: authorization, TLS, a proxy, headers. Redirects are not followed.
	Client config.HTTPClientConfig
	// Timeout limits one request, [DefaultTimeout] if zero.
	Timeout time.Duration
	// Delay is how old a second must be to be compared: it must have had the time to arrive. [DefaultDelay] if zero; for a [Checker]
	// it is [DefaultCheckerDelay], when it has left the history and no scraper can catch up any more.
	Delay time.Duration

	// Every and Window are for a [Checker]: how often it checks, and how many seconds. [DefaultEvery] and [DefaultWindow] if zero.
	Every, Window time.Duration
	// Logger of a [Checker] is told when something is wrong, and when all is well again; slog.Default if nil.
	Logger *slog.Logger
}

func (o *Options) defaults(delay time.Duration) {
	for d, otherwise := range map[*time.Duration]time.Duration{
		&o.Timeout: DefaultTimeout, &o.Delay: delay, &o.Every: DefaultEvery, &o.Window: DefaultWindow,
	} {
		if *d == 0 {
			*d = otherwise
		}
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
}

var (
	validLabel = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	endpoint   = regexp.MustCompile(`/api/v1(/|$)`)
)

// Check returns everything that is wrong with the options. The namespace is that of the gap, windowstat if empty.
func (o Options) Check(namespace string) error {
	o.defaults(DefaultDelay)
	if namespace == "" {
		namespace = table.Namespace
	}
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf("verify: "+format, args...)) }
	if u, err := bare.Server(o.URL); err != nil {
		wrong("%w", err)
	} else if endpoint.MatchString(u.Path) {
		wrong("URL %q: what comes before /api/v1 is needed", bare.URL(o.URL))
	}
	if len(o.Labels) == 0 {
		wrong("Labels: those of the instance are needed, such as job and instance")
	}
	for name, value := range o.Labels {
		if !validLabel.MatchString(name) || strings.HasPrefix(name, "__") || name == "resource" || value == "" {
			wrong("label %q=%q: letters, digits and _ are allowed in names, no digit in front, not __ and not resource; values are not empty", name, value)
		}
	}
	if err := backfill.CheckNamespace(namespace); err != nil {
		wrong("%w", err)
		namespace = table.Namespace
	}
	for _, name := range o.Metrics {
		if all := seconds.Logged(namespace); !slices.Contains(all, name) {
			wrong("metric %.70q is not in the log, which has %s", name, strings.Join(all, ", "))
		}
	}
	for name, d := range map[string]time.Duration{"Timeout": o.Timeout, "Delay": o.Delay, "Every": o.Every, "Window": o.Window} {
		if d < time.Second || d > 24*time.Hour {
			wrong("%s is %v; a second to a day is allowed", name, d)
		}
	}
	if err := o.Client.Validate(); err != nil {
		wrong("Client: %w", err)
	}
	return errors.Join(errs...)
}
