package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/replay"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

// longestGap is how far back a metric log may end for a replay to go on there.
const longestGap = 24 * time.Hour

// serve replays files that grow, with every way out on.
func (r *replaying) serve(c *cli.Context) error {
	var after time.Time
	if r.Log.Dir != "" {
		last, err := metriclog.Last(r.logOptions())
		if err != nil {
			return fmt.Errorf("--metric-log.dir: %w", err)
		}
		if ago := time.Since(last); ago < longestGap {
			after = last
		} else if !last.IsZero() {
			r.options.Note(fmt.Sprintf("the metric log ends %v ago, which is too long to go on there: what was written since is not counted", ago.Round(time.Minute)))
		}
	}
	f, err := replay.Await(c.Context, func() (*replay.Follower, error) { return replay.NewFollower(r.options, after) })
	if err != nil && c.Context.Err() != nil {
		return nil // it is told to end before it has begun
	}
	if err != nil {
		return err
	}
	r.Collector = collector.Options{Now: f.Clock.Now, Given: r.given(), MaxResources: r.options.MaxResources, DurationsUnknown: !f.Timed()}
	r.Drain = -1 // when the files are read no more, nothing completes
	tele, err := startTelemetry(r.settings)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	tele.Collector.Publish(f.Metrics()...)
	saveNames := keepNames(tele, f.Names())
	fmt.Fprintf(c.App.Writer, "following   %s, %v behind\nmetrics     %s\n", strings.Join(r.options.Files, ", "), r.options.Tolerance, tele.url())
	if r.Log.Dir != "" {
		fmt.Fprintf(c.App.Writer, "metric log  %s\n", r.Log.Dir)
	}
	ctx, cancel := context.WithCancel(c.Context)
	defer cancel()
	go func() {
		select {
		case <-tele.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	err = f.Run(ctx, tele.Collector, func() {
		if tele.Log != nil {
			_ = tele.Log.Flush() // it counts and reports what fails
		}
	})
	saveNames()
	err = errors.Join(err, tele.stop())
	report := f.Report()
	return errors.Join(err, report.Print(c.App.Writer, c.App.ErrWriter), report.TooMany(r.failAbove, r.lateAbove))
}
