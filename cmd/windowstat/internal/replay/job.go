package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/accesslog"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/logquery"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/routes"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/telemetry"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/node"
)

// Job is the work of windowstat replay. It counts the calls of access logs into a summary and a metric log, or it
// follows the logs and serves the counts.
type Job struct {
	Replay    Options // what Naming, Telemetry and Run know is filled in
	Naming    routes.Naming
	Telemetry telemetry.Options
	Follow    bool
	From, To  string            // range of time, see [logquery.TimeHelp]; empty for no bound
	Keys      map[string]string // keys of JSON by field, see [accesslog.Format.WithKeys]
	FailAbove float64           // maximum share of all lines that are not counted
	LateAbove float64           // maximum share of late lines of one log
}

// DefaultLate is a share of late lines beyond what clocks and buffers of servers explain.
const DefaultLate = 0.001

// Tolerances of logs that end, and of logs that are followed.
const (
	DefaultTolerance       = 5 * time.Minute
	DefaultFollowTolerance = 10 * time.Second
	maxTolerance           = 24 * time.Hour
)

// Check returns all invalid options. It also sets the options that depend on others.
func (j *Job) Check() error {
	var errs []error
	wrong := func(field, format string, args ...any) {
		errs = append(errs, &collector.OptionError{Package: "replay", Field: field, Err: fmt.Errorf(format, args...)})
	}
	o := &j.Replay
	// There is no default: a command that reads stdin without being told looks as if it hung.
	if len(o.Files) == 0 {
		wrong("", "which access log? Give its files, or - for stdin")
	}
	for i, name := range o.Files {
		// Only followed logs may be patterns; for others, the shell has expanded them.
		if _, err := filepath.Match(name, ""); err != nil && j.Follow {
			wrong("", "%s: %w, such as a [ without a ]", name, err)
		}
		switch other := slices.IndexFunc(o.Files[:i], func(x string) bool { return sameFile(x, name) }); {
		case other < 0:
		case o.Files[other] == name:
			wrong("", "%s is given twice", name)
		default:
			wrong("", "%s and %s are the same file", o.Files[other], name)
		}
	}
	if o.Tolerance < 0 || o.Tolerance > maxTolerance || o.Tolerance%time.Second != 0 {
		wrong("Tolerance", "%v is not whole seconds from 0s to %v", o.Tolerance, maxTolerance)
	}
	if status := o.Exceptions.Common(&o.Blocks); status != 0 {
		wrong("Blocks", "%d is in --exception-status, too", status)
	}
	for _, dir := range o.RotatedDirs {
		if at, err := os.Stat(dir); err != nil || !at.IsDir() {
			wrong("RotatedDirs", "%s is not a directory", dir)
		}
	}
	var err error
	if o.From, o.To, err = logquery.ParseRange(j.From, j.To, time.Now(), o.Zone); err != nil {
		wrong("", "%w", err)
	}
	if len(j.Keys) > 0 {
		if o.Format, err = withKeys(o.Format, j.Keys); err != nil {
			wrong("Keys", "%w", err)
		}
	}
	if !(j.FailAbove >= 0 && j.FailAbove <= 1) {
		wrong("FailAbove", "%v is not between 0 and 1", j.FailAbove)
	}
	errs = append(errs, j.Naming.Check())
	// The flags of names are those of the proxy. These are their consequences for a replay.
	earned := j.Naming.Earned()
	o.Names, o.MaxResources = &earned, j.Naming.MaxResources
	if o.PathDepth = j.Naming.Depth; len(j.Naming.Routes.Patterns) > 0 || j.Naming.Loose {
		o.Name = j.Naming.Name()
	}
	j.Telemetry.Exporter.Collector.MaxResources = o.MaxResources
	return errors.Join(append(errs, j.Telemetry.Check())...)
}

// withKeys returns a JSON format that also reads the given keys. Without a format it is json.
func withKeys(f *accesslog.Format, keys map[string]string) (*accesslog.Format, error) {
	if f == nil {
		var err error
		if f, err = accesslog.Named("json"); err != nil {
			return nil, err
		}
	}
	return f.WithKeys(keys)
}

// sameFile reports whether two names lead to one file.
func sameFile(a, b string) bool {
	if a == b {
		return true
	}
	x, err := os.Stat(a)
	y, err2 := os.Stat(b)
	return err == nil && err2 == nil && a != "-" && b != "-" && os.SameFile(x, y)
}

// Run replays the files to their ends, or follows them until ctx ends.
func (j *Job) Run(ctx context.Context, stdout, stderr io.Writer) error {
	j.Replay.Note = func(text string) { fmt.Fprintf(stderr, "windowstat: %s\n", text) }
	if j.Follow {
		return j.follow(ctx, stdout, stderr)
	}
	return j.files(ctx, stdout, stderr)
}

// files counts the calls of files that end. It prints the counts and the report even if there is an error.
func (j *Job) files(ctx context.Context, stdout, stderr io.Writer) (err error) {
	var archive *metriclog.Archive
	if j.Telemetry.Exporter.Log.Dir != "" {
		if archive, err = metriclog.NewArchive(j.Telemetry.MetricLog(stderr)); err != nil {
			return fmt.Errorf("--metric-log.dir: %w", err)
		}
	}
	// Little memory is live, and much is garbage.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	sum := logquery.NewSummary(j.Replay.Zone)
	var row metriclog.Row
	report, err := Run(ctx, j.Replay, func(s *Second) error {
		for resource, m := range s.All() {
			row = logRow(resource, m)
			sum.Add(&row)
		}
		if archive == nil {
			return nil
		}
		return archive.Append(s.Start, s.All())
	})
	if archive != nil {
		err = errors.Join(err, archive.Close())
	}
	if report.Lines == 0 && err != nil {
		return err
	}
	return errors.Join(err, report.Print(stdout, stderr), sum.Write(stdout), report.TooMany(j.FailAbove, j.LateAbove))
}

// logRow returns a record as a row of the log.
func logRow(resource string, m *node.MetricNode) metriclog.Row {
	return metriclog.Row{
		Start: m.Start, Resource: resource, Pass: m.Pass, Block: m.Block, Success: m.Complete, Exception: m.Exception,
		OccupiedPass: m.OccupiedPass, RT: m.AvgRT(), Concurrency: m.InFlightMax,
	}
}

// longestGap is the maximum age of the end of a metric log at which a replay continues.
const longestGap = 24 * time.Hour

// follow follows the files, with all exporters.
func (j *Job) follow(ctx context.Context, stdout, stderr io.Writer) error {
	// What is in the metric log is counted: the log says where to go on, so there is no other state that could differ
	// from it. The Collector needs to know when its first second is, so the end of the log is read before anything is
	// made.
	after, err := j.after(stderr)
	if err != nil {
		return err
	}
	f, err := await(ctx, func() (*Follower, error) { return NewFollower(j.Replay, after) })
	if err != nil && ctx.Err() != nil {
		return nil // it ends before it has begun
	}
	if err != nil {
		return err
	}
	// Limits and the table of resources are those of the lines; response times are unknown if the logs do not tell
	// them.
	x := &j.Telemetry.Exporter
	x.Collector = collector.Options{
		Now:              f.Clock.Now,
		Given:            j.Naming.Given(),
		MaxResources:     j.Naming.MaxResources,
		DurationsUnknown: !f.counts.Timed,
		OpenTelemetry:    x.Collector.OpenTelemetry,
	}
	x.Drain = -1 // when the files are read no more, nothing completes
	t, err := telemetry.Start(&j.Telemetry, stderr)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	t.Collector.Publish(f.Metrics()...)
	t.KeepNames(f.names.earned)
	fmt.Fprintf(
		stdout,
		"following   %s, %v behind\n%s",
		strings.Join(j.Replay.Files, ", "),
		j.Replay.Tolerance+ingestDelay,
		t.Banner,
	)
	ctx = t.Ready(ctx)
	err = f.Run(ctx, t.Collector, func() {
		if t.Log != nil {
			_ = t.Log.Flush() // it counts and reports what fails
		}
	})
	err = errors.Join(err, t.Stop())
	report := f.Report()
	return errors.Join(err, report.Print(stdout, stderr), report.TooMany(j.FailAbove, j.LateAbove))
}

// after returns the last second of the metric log, zero if there is none to go on with.
func (j *Job) after(stderr io.Writer) (time.Time, error) {
	last, err := j.Telemetry.LastLogged(stderr)
	// Rotated files of more than a day ago are mostly gone, and what is left would be counted as all there was.
	if ago := time.Since(last); !last.IsZero() && ago >= longestGap {
		j.Replay.Note(
			fmt.Sprintf(
				"the metric log ends %v ago, which is too long to go on there: what was written since is not counted",
				ago.Round(time.Minute),
			),
		)
		last = time.Time{}
	}
	return last, err
}
