package verify

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/background"
	"github.com/windowstat/windowstat/internal/redact"
)

// Checker compares a database with the metric log every few minutes and publishes the result as metrics, until Run
// returns. Create it with [New]. It is safe for concurrent use, but Run or Start must be called only once. A check
// reads Options.Window of the log and the hour before it, and queries as many samples as the window has; see [Check].
type Checker struct {
	gap       Gap
	options   Options
	unpublish func() // removes the metrics

	mu        sync.Mutex // guards the fields below
	last      Report     // of the last successful check
	checked   int64      // seconds compared, in all checks together
	errors    int64      // failed checks
	succeeded time.Time  // end of the last successful check
	logged    string     // message of the current problem; empty without a problem
}

// New returns a Checker for the log that gap selects. The range of the gap is ignored, because each check has its own
// range: see Options.Delay and Options.Window. The error names every invalid option.
func New(c *collector.Collector, gap Gap, o Options) (*Checker, error) {
	err := o.Check(gap.Namespace)
	wrong := func(text string) {
		err = errors.Join(&collector.OptionError{Package: "verify", Err: errors.New(text)}, err)
	}
	if c == nil {
		wrong("no Collector")
	}
	if gap.Searcher.Dir == "" {
		wrong("no metric log to compare with")
	}
	if err != nil {
		return nil, err
	}
	// The default delay is longer than in Check, because a scraper may fetch a second as long as it is in the history.
	o.defaults(DefaultCheckerDelay)
	k := &Checker{gap: gap, options: o}
	k.unpublish = c.Publish(k.metrics()...)
	return k, nil
}

// Run checks once per Options.Every until ctx ends, and returns nil. The first check begins after a random part of
// Options.Every. A fleet that starts together therefore does not query the database together.
func (k *Checker) Run(ctx context.Context) error {
	defer k.unpublish()
	for wait := rand.N(k.options.Every); background.Sleep(ctx, wait); wait = k.options.Every {
		k.check(ctx)
	}
	return nil
}

// Start runs Run in a new goroutine. The returned function cancels the context of Run, waits for Run to return, and
// returns its error. It may be called several times.
func (k *Checker) Start() (stop func() error) { return background.Start(k.Run) }

// check compares the window. It gives up after Options.Every, when the next check is due.
//
//	result                                         metrics             message, if it changes
//	an error, or a warning of the server           one more error      Error: cannot compare
//	the log has no second that is old enough       unchanged           Info: equal again
//	missing, different or extra seconds            of this check       Error: the database differs
//	equal                                          of this check       Info: equal again
//
// A check that ctx interrupts has no result.
func (k *Checker) check(ctx context.Context) {
	checking, cancel := context.WithTimeout(ctx, k.options.Every)
	defer cancel()
	gap := k.gap
	gap.To = time.Now().Add(-k.options.Delay).Truncate(time.Second)
	gap.From = gap.To.Add(time.Second - k.options.Window)
	report, err := Check(checking, gap, k.options)
	if err == nil && len(report.Warnings) > 0 {
		err = fmt.Errorf("the server warns: %s", report.Warnings[0])
	}
	if ctx.Err() != nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	problem, args := "", []any{"url", redact.URL(k.options.URL), "labels", selector(nil, k.options.Labels)}
	switch {
	case err != nil:
		k.errors++
		problem, args = "cannot compare the database with the metric log", append(args, "err", err)
	case report.From.After(report.To):
	default:
		k.last, k.succeeded = report, time.Now()
		if k.checked += report.Seconds; !report.Clean() {
			problem = "the database differs from the metric log; run windowstat verify for details"
			args = append(args, "from", report.From, "to", report.To, "missing_seconds", report.Missing,
				"different_seconds", report.Different, "extra_seconds", report.Extra)
		}
	}
	// Log only changes of the message. A gap stays in the window for many checks, and the metrics show how it grows.
	switch {
	case problem == k.logged:
	case problem != "":
		k.options.Logger.Error(problem, args...)
	default:
		k.options.Logger.Info("the database equals the metric log again", args...)
	}
	k.logged = problem
}

// metrics returns the metrics of the Checker. Their labels distinguish several Checkers of one process.
func (k *Checker) metrics() []collector.Metric {
	metric := func(name, unit, help string, value func() float64) collector.Metric {
		return collector.Metric{
			Name: name, Unit: unit, Help: help, Labels: []string{"target", "selector"},
			Read: func(yield func(float64, ...string)) {
				k.mu.Lock()
				v := value()
				// Counters start at 0 because rate() needs a sample before the first error. Gauges have no value before
				// the first check.
				present := !k.succeeded.IsZero() || strings.HasSuffix(name, "_total")
				k.mu.Unlock()
				if present {
					yield(v, redact.URL(k.options.URL), selector(nil, k.options.Labels))
				}
			},
		}
	}
	// The alert WindowstatDatabaseDiffers uses the first three. Each is absent before the first check, because 0 would
	// mean that the database is right.
	const absent = " Absent before the first successful check."
	return []collector.Metric{
		metric("database_missing_seconds", "seconds",
			"Seconds in the window of the last check with samples of the metric log that the database lacks."+absent,
			func() float64 { return float64(k.last.Missing) }),
		metric("database_different_seconds", "seconds",
			"Seconds in the window of the last check with different values in the database and the metric log."+absent,
			func() float64 { return float64(k.last.Different) }),
		metric("database_extra_seconds", "seconds",
			"Seconds in the window of the last check with samples of the database that the metric log lacks, "+
				"or with several samples of one series in the database."+absent,
			func() float64 { return float64(k.last.Extra) }),
		metric("database_checked_seconds_total", "seconds",
			"Seconds that were compared with the metric log. A second counts in each check that compares it.",
			func() float64 { return float64(k.checked) }),
		metric("database_check_errors_total", "",
			"Failed checks: the database or the log could not be read, or the server warned.",
			func() float64 { return float64(k.errors) }),
		metric("database_last_success_timestamp_seconds", "seconds",
			"Unix time of the last successful check. Absent before the first.",
			func() float64 { return float64(k.succeeded.UnixMilli()) / float64(time.Second/time.Millisecond) }),
	}
}
