package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/server"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/telemetry"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

// longestGap is how far back a metric log may end for a replay to go on there.
const longestGap = 24 * time.Hour

// follow follows the files, with every way out on.
func (j *Job) follow(ctx context.Context, stdout, stderr io.Writer) error {
	after, err := j.after(stderr)
	if err != nil {
		return err
	}
	f, err := Await(ctx, func() (*Follower, error) { return NewFollower(j.Replay, after) })
	if err != nil && ctx.Err() != nil {
		return nil // it ends before it has begun
	}
	if err != nil {
		return err
	}
	x := &j.Telemetry.Exporter
	x.Collector = collector.Options{Now: f.Clock.Now, Given: j.Naming.Given(), MaxResources: j.Naming.MaxResources, DurationsUnknown: !f.Timed()}
	x.Drain = -1 // when the files are read no more, nothing completes
	t, err := telemetry.Start(&j.Telemetry, stderr)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	t.Collector.Publish(f.Metrics()...)
	saveNames := t.KeepNames(f.Names())
	fmt.Fprintf(stdout, "following   %s, %v behind\n%s", strings.Join(j.Replay.Files, ", "), j.Replay.Tolerance, t.Banner())
	ctx, cancel := server.Until(ctx, t.Pages)
	defer cancel()
	err = f.Run(ctx, t.Collector, func() {
		if t.Log != nil {
			_ = t.Log.Flush() // it counts and reports what fails
		}
	})
	saveNames()
	err = errors.Join(err, t.Stop())
	report := f.Report()
	return errors.Join(err, report.Print(stdout, stderr), report.TooMany(j.FailAbove, j.LateAbove))
}

// after returns the last second of the metric log, zero if there is none to go on with.
func (j *Job) after(stderr io.Writer) (time.Time, error) {
	if j.Telemetry.Exporter.Log.Dir == "" {
		return time.Time{}, nil
	}
	last, err := metriclog.Last(j.log(stderr))
	if err != nil {
		return last, fmt.Errorf("--metric-log.dir: %w", err)
	}
	ago := time.Since(last)
	if !last.IsZero() && ago >= longestGap {
		j.Replay.Note(fmt.Sprintf("the metric log ends %v ago, which is too long to go on there: what was written since is not counted", ago.Round(time.Minute)))
		return time.Time{}, nil
	}
	return last, nil
}
