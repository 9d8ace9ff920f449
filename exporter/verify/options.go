package verify

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/gather"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/internal/redact"
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
	// All also compares, and writes, metrics and resources that the database does not know of the instance: those that it is not asked
	// for, as a rule.
	All bool
	// Runs are decided by hand: their seconds are written, see [Heal]. 0 stands for seconds whose run is not known.
	Runs []int64
	// Client sends the requests: set its Transport for authorization, TLS, a proxy. It is copied, and redirects are not followed. If
	// nil, it is one without them, with the proxy of the environment.
	Client *http.Client
	// Timeout limits one request, [DefaultTimeout] if zero.
	Timeout time.Duration
	// Delay is how old a second must be to be compared: it must have had the time to arrive. VictoriaMetrics shows the seconds of a new
	// series up to eleven seconds late to a query that it has answered before. [DefaultDelay] if zero; for a [Checker] it is
	// [DefaultCheckerDelay], when it has left the history and no scraper can catch up any more.
	Delay time.Duration

	// Every and Window are for a [Checker]: how often it checks, and how many seconds. [DefaultEvery] and [DefaultWindow] if zero.
	Every, Window time.Duration
	// Logger of a [Checker] receives when something is wrong, and when all is well again; slog.Default if nil.
	Logger *slog.Logger
}

func (o *Options) defaults(delay time.Duration) {
	o.Timeout, o.Delay = cmp.Or(o.Timeout, DefaultTimeout), cmp.Or(o.Delay, delay)
	o.Every, o.Window = cmp.Or(o.Every, DefaultEvery), cmp.Or(o.Window, DefaultWindow)
	o.Logger = cmp.Or(o.Logger, slog.Default())
}

var (
	validLabel = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.]*$`)
	endpoint   = regexp.MustCompile(`/api/v1(/|$)`)
)

// Check returns everything that is wrong with the options, as [collector.OptionError]s. The namespace is that of the gap,
// windowstat if empty.
func (o Options) Check(namespace string) error {
	o.defaults(DefaultDelay)
	var errs []error
	wrong := func(field, format string, args ...any) {
		errs = append(errs, &collector.OptionError{Package: "verify", Field: field, Err: fmt.Errorf(format, args...)})
	}
	if u, err := redact.ParseURL(o.URL); err != nil {
		wrong("URL", "%w", err)
	} else if endpoint.MatchString(u.Path) {
		wrong("URL", "%q: what comes before /api/v1 is needed", redact.URL(o.URL))
	}
	if len(o.Labels) == 0 {
		wrong("Labels", "those of the instance are needed, such as job and instance")
	}
	for _, name := range slices.Sorted(maps.Keys(o.Labels)) {
		if value := o.Labels[name]; !validLabel.MatchString(name) || strings.HasPrefix(name, "__") || name == "resource" || value == "" {
			wrong("Labels", "%q=%q: letters, digits, _ and . are allowed in names, no digit or . in front, not __ and not resource; values are not empty", name, value)
		}
	}
	if err := gather.CheckNamespace(cmp.Or(namespace, table.Namespace)); err != nil {
		wrong("Namespace", "%w", err)
	}
	for _, d := range []struct {
		field string
		time.Duration
	}{{"Timeout", o.Timeout}, {"Delay", o.Delay}, {"Every", o.Every}, {"Window", o.Window}} {
		if d.Duration < time.Second || d.Duration > 24*time.Hour {
			wrong(d.field, "%v; a second to a day is allowed", d.Duration)
		}
	}
	return errors.Join(errs...)
}
