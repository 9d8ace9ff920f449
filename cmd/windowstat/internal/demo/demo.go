package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/server"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/telemetry"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

// Options has the options of the demo. The flags of the command set them.
type Options struct {
	// Telemetry has the options of the exporters and of the pages.
	Telemetry telemetry.Options
	// Rate includes requests that the service will refuse. Retries of an incident are additional requests.
	Rate     float64       // requests per second, over all routes
	Duration time.Duration // length of the run; 0 until ctx ends
	Incident string        // one of [Incidents], or empty
	// After leaves time for usual numbers, because alerts and onsets compare an incident with the time before.
	After time.Duration // time before the incident
}

// maxRate is the maximum of Options.Rate. No machine can send so many requests to itself.
const maxRate = 100_000

// Check returns all errors in the options.
func (o *Options) Check() error {
	var errs []error
	wrong := func(field, format string, args ...any) {
		errs = append(errs, &collector.OptionError{Package: "demo", Field: field, Err: fmt.Errorf(format, args...)})
	}
	// The negated condition also refuses NaN: every comparison with NaN is false.
	if !(o.Rate > 0 && o.Rate <= maxRate) {
		wrong("Rate", "%v is not above 0 and at most %d", o.Rate, maxRate)
	}
	if o.Duration < 0 {
		wrong("Duration", "%v is negative", o.Duration)
	}
	if o.Incident != "" && !slices.Contains(Incidents, o.Incident) {
		wrong("Incident", "%q is not one of %s", o.Incident, strings.Join(Incidents, ", "))
	}
	if o.After < 0 {
		wrong("After", "%v is negative", o.After)
	}
	// Only one owner can set the limits of a Collector: the incident, or the file that is read again when it changes.
	if o.Incident == lowLimit && o.Telemetry.Exporter.LimitsFile != "" {
		wrong("Incident", "%s sets limits, and so excludes a file of limits", o.Incident)
	}
	return errors.Join(append(errs, o.Telemetry.Check())...)
}

// Run runs the service under load until ctx ends or the duration is over. Then it compares the sent calls with the
// counted, scraped and logged ones. It prints the comparison to stdout, and returns [ErrDifferent] if the counts
// differ.
//
// Without a directory for the metric log, Run uses a temporary one. It deletes this directory at the end, unless the
// counts differ: then the log is needed to find the cause.
func (o *Options) Run(ctx context.Context, stdout, stderr io.Writer) (err error) {
	log := &o.Telemetry.Exporter.Log
	// The comparison needs a metric log in any case, because the log has one of the four compared counts.
	if log.Dir == "" {
		if log.Dir, err = os.MkdirTemp("", "windowstat-demo-"); err != nil {
			return err
		}
		defer func() {
			if !errors.Is(err, ErrDifferent) {
				err = errors.Join(err, os.RemoveAll(log.Dir))
			}
		}()
	}
	t, err := telemetry.Start(&o.Telemetry, stderr)
	if err != nil {
		return err
	}
	// Stop the pages last, so that a viewer can read them during the comparison.
	defer func() { err = errors.Join(err, t.Pages.Stop()) }()
	shop, from, err := o.runShop(ctx, t, stdout)
	// Finish writes the last second to the metric log. The log is complete only after that, so the comparison follows.
	if err := errors.Join(err, t.Finish()); err != nil {
		return err
	}
	// The metrics page of the demo may require TLS or a password. Read the same page from a separate listener without
	// them.
	own, err := server.Listen("127.0.0.1:0", t.Metrics, t.Logger, server.Own())
	if err != nil {
		return err
	}
	search := metriclog.Searcher{Dir: log.Dir, App: o.Telemetry.Exporter.App}
	err = shop.Reconcile(stdout, "http://"+own.Address(), search, from)
	return errors.Join(err, own.Stop())
}

// runShop runs the service under load until ctx ends or the duration is over. It returns the shop with the sent calls,
// and from, the first second of the counts.
func (o *Options) runShop(
	ctx context.Context, t *telemetry.Telemetry, stdout io.Writer,
) (shop *Shop, from time.Time, err error) {
	// The log may have seconds of an earlier demo. The comparison begins with the current second. Take the second from
	// the timeline of the Collector. The timeline may differ from the wall clock, and the log has the seconds of the
	// timeline.
	line := t.Collector.Timeline()
	from, _ = line.WallTime(line.At(line.Now()).Index)
	shop = NewShop(t.Collector, o.Rate, o.Incident, from.Add(o.After))
	if o.Telemetry.Exporter.LimitsFile == "" {
		if err := t.Collector.SetLimits(shop.Limits()); err != nil {
			return nil, from, err
		}
	}
	service, err := server.Listen("127.0.0.1:0", shop.Handler(), t.Logger, server.Own())
	if err != nil {
		return nil, from, err
	}
	until := "until interrupted (Ctrl-C)"
	if o.Duration > 0 {
		until = fmt.Sprintf("for %v", o.Duration)
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Duration)
		defer cancel()
	}
	fmt.Fprintf(stdout, "service     http://%s  under %g requests per second\n%srunning %s\n",
		service.Address(), o.Rate, t.Banner, until)
	if i := shop.incident; o.Incident != "" {
		fmt.Fprintf(stdout, "incident    %s from %s on, for %v\n", i.name, i.from.Format(time.RFC3339), incidentLength)
	}
	// The context now also ends if the service or the pages fail, so the load does not continue without a receiver.
	ctx = t.Ready(ctx, service)
	// The service may have counted an unanswered request that the generator has not. The comparison may then report a
	// difference.
	unanswered := shop.Load(ctx, "http://"+service.Address(), &http.Transport{MaxIdleConnsPerHost: maxInFlight})
	if unanswered > 0 {
		fmt.Fprintf(stdout, "%d requests received no response\n", unanswered)
	}
	// A client may receive its response before the handler returns, and the call is counted when it returns. Stop waits
	// for all handlers.
	if err := service.Stop(); err != nil {
		return nil, from, fmt.Errorf("service: %w", err)
	}
	return shop, from, nil
}
