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
	// The following defaults apply to a [Checker].
	DefaultEvery        = 5 * time.Minute
	DefaultWindow       = 15 * time.Minute
	DefaultCheckerDelay = 15 * time.Minute
)

// Options select a database and an instance in it. URL and Labels are required.
type Options struct {
	// URL is the URL of the query API without /api/v1/query: http://prometheus:9090, http://mimir/prometheus, or
	// http://vmselect:8481/select/0/prometheus for a tenant. Its query parameters are sent with each request.
	URL string
	// Labels select the series of one instance, such as job and instance.
	Labels map[string]string
	// All also compares, and writes, metrics and resources that the database does not have of the instance. Without All
	// they are left out, because the scraper usually does not request them.
	All bool
	// Runs lists runs whose missing seconds are written even if other labels have them, see [Heal]. 0 selects seconds
	// whose run is unknown.
	Runs []int64
	// Client sends the requests. Set its Transport for authorization, TLS or a proxy. The Client is copied, and
	// its copy does not follow redirects. If nil, requests have no authorization and use the proxy of the environment.
	Client *http.Client
	// Timeout limits one request, [DefaultTimeout] if zero.
	Timeout time.Duration
	// Delay is the minimum age of the seconds to compare, because younger seconds may still arrive. VictoriaMetrics
	// shows the seconds of a new series up to eleven seconds late if it has answered the same query before. If Delay is
	// zero, it is [DefaultDelay], or [DefaultCheckerDelay] for a [Checker]. After DefaultCheckerDelay a second has left
	// the history, and no scraper can get it.
	Delay time.Duration

	// Every is the interval between the checks of a [Checker], and Window is the length of the range that it compares.
	// [DefaultEvery] and [DefaultWindow] if zero.
	Every, Window time.Duration
	// Logger gets a message when the result of a [Checker] changes: to differences, to an error, or to equal.
	// slog.Default if nil.
	Logger *slog.Logger
}

// defaults sets the fields that are zero. Delay is the default of Options.Delay.
func (o *Options) defaults(delay time.Duration) {
	o.Timeout, o.Delay = cmp.Or(o.Timeout, DefaultTimeout), cmp.Or(o.Delay, delay)
	o.Every, o.Window = cmp.Or(o.Every, DefaultEvery), cmp.Or(o.Window, DefaultWindow)
	o.Logger = cmp.Or(o.Logger, slog.Default())
}

var (
	// A dot may be in a label of VictoriaMetrics, which keeps the attributes of an OTLP push under their own names.
	validLabel = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.]*$`)
	// A common mistake is the URL of an endpoint. URL must be only the part before /api/v1.
	endpoint = regexp.MustCompile(`/api/v1(/|$)`)
)

// Check returns an error for each invalid option, as a [collector.OptionError]. The namespace is [Gap].Namespace.
func (o Options) Check(namespace string) error {
	o.defaults(DefaultDelay)
	var errs []error
	wrong := func(field, format string, args ...any) {
		errs = append(errs, &collector.OptionError{Package: "verify", Field: field, Err: fmt.Errorf(format, args...)})
	}
	if u, err := redact.ParseURL(o.URL); err != nil {
		wrong("URL", "%w", err)
	} else if endpoint.MatchString(u.Path) {
		wrong("URL", "%q: leave out /api/v1 and what follows it", redact.URL(o.URL))
	}
	if len(o.Labels) == 0 {
		wrong("Labels", "labels of the instance are required, such as job and instance")
	}
	for _, name := range slices.Sorted(maps.Keys(o.Labels)) {
		value := o.Labels[name]
		if !validLabel.MatchString(name) || strings.HasPrefix(name, "__") || name == "resource" || value == "" {
			wrong("Labels", "%q=%q: a name has letters, digits, _ and ., starts with a letter or a single _, "+
				"and is not resource; a value is not empty", name, value)
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
			wrong(d.field, "%v; must be from 1s to 24h", d.Duration)
		}
	}
	return errors.Join(errs...)
}
