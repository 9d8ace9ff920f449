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

// Checker compares a database with the metric log every few minutes, and publishes what it finds as metrics until Run has
// returned. It must be made with [New], and is safe for concurrent use; Run or Start must be called once. A check reads the
// window of the log and the hour before, and asks for as many samples as the window has; see [Check].
type Checker struct {
	gap       Gap
	options   Options
	unpublish func()

	mu        sync.Mutex // guards what follows
	last      Report     // of the last check that succeeded
	checked   int64      // seconds
	errors    int64
	succeeded time.Time
	found     string // that is wrong, as it was logged; empty if all is well
}

// New makes a Checker. Of the gap it uses all but the range. The error names every invalid option.
func New(c *collector.Collector, gap Gap, o Options) (*Checker, error) {
	err := o.Check(gap.Namespace)
	wrong := func(text string) {
		err = errors.Join(&collector.OptionError{Package: "verify", Err: errors.New(text)}, err)
	}
	if c == nil {
		wrong("no Collector")
	}
	if gap.Searcher.Dir == "" {
		wrong("there is no metric log to compare with")
	}
	if err != nil {
		return nil, err
	}
	o.defaults(DefaultCheckerDelay)
	k := &Checker{gap: gap, options: o}
	k.unpublish = c.Publish(k.metrics()...)
	return k, nil
}

// Run checks until ctx ends, the first time after a part of Every: not all processes ask at the same time. It returns nil.
func (k *Checker) Run(ctx context.Context) error {
	defer k.unpublish()
	for wait := rand.N(k.options.Every); background.Sleep(ctx, wait); wait = k.options.Every {
		k.check(ctx)
	}
	return nil
}

// Start runs Run in a new goroutine. The returned stop cancels its context, waits for it, and returns its error; it may be
// called several times.
func (k *Checker) Start() (stop func() error) { return background.Start(k.Run) }

// check compares the window. One that takes too long is given up before the next.
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
	// A state is logged when it changes, and not with each check: a gap stays in the window for many of them.
	found, target := "", []any{"url", redact.URL(k.options.URL), "labels", selector(nil, k.options.Labels)}
	switch {
	case err != nil:
		k.errors++
		found, target = "cannot compare the database with the metric log", append(target, "err", err)
	case report.From.After(report.To): // the log is too young
	default:
		k.last, k.succeeded = report, time.Now()
		if k.checked += report.Seconds; !report.Clean() {
			found = "the database is not what the metric log is; windowstat verify tells more"
			target = append(target, "from", report.From, "to", report.To,
				"missing_seconds", report.Missing, "different_seconds", report.Different, "extra_seconds", report.Extra)
		}
	}
	switch {
	case found == k.found:
	case found != "":
		k.options.Logger.Error(found, target...)
	default:
		k.options.Logger.Info("the database can be compared, and has what the metric log has, again", target...)
	}
	k.found = found
}

// metrics returns the metrics that a Checker publishes. The labels distinguish the databases of a process, and checks of one of them.
func (k *Checker) metrics() []collector.Metric {
	metric := func(name, unit, help string, value func() float64) collector.Metric {
		return collector.Metric{
			Name: name, Unit: unit, Help: help, Labels: []string{"target", "selector"},
			Read: func(yield func(float64, ...string)) {
				k.mu.Lock()
				v, known := value(), !k.succeeded.IsZero() || strings.HasSuffix(name, "_total") // what is wrong shows with the first check
				k.mu.Unlock()
				if known {
					yield(v, redact.URL(k.options.URL), selector(nil, k.options.Labels))
				}
			},
		}
	}
	return []collector.Metric{
		metric("database_missing_seconds", "seconds", "Seconds in the window of the last check for which the database lacks samples that the metric log has; none before the first check.", func() float64 { return float64(k.last.Missing) }),
		metric("database_different_seconds", "seconds", "Seconds in the window of the last check for which the database has other values than the metric log.", func() float64 { return float64(k.last.Different) }),
		metric("database_extra_seconds", "seconds", "Seconds in the window of the last check for which the database has samples that the metric log does not have, or several samples of one series.", func() float64 { return float64(k.last.Extra) }),
		metric("database_checked_seconds_total", "seconds", "Seconds that were compared with the metric log, in each check anew.", func() float64 { return float64(k.checked) }),
		metric("database_check_errors_total", "", "Checks that failed: the database or the log could not be read, or the response was uncertain.", func() float64 { return float64(k.errors) }),
		metric("database_last_success_timestamp_seconds", "seconds", "Unix time of the last check that succeeded; none before the first.", func() float64 { return float64(k.succeeded.UnixMilli()) / float64(time.Second/time.Millisecond) }),
	}
}
