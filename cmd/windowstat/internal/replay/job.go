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

// Job is one run of windowstat replay. It counts the calls of access logs into a summary and a metric log, or it
// follows the logs and serves the counts:
//
//	            writes to stdout              metric log              exporters
//	files       report and summary            each second             none
//	Follow      banner; report at the end     each second; the next   all
//	                                          run continues it
//
// Fill in the fields, call Check, then Run. The flags of the command set the fields.
type Job struct {
	Replay    Options // Check and Run set the fields that follow from the other options
	Naming    routes.Naming
	Telemetry telemetry.Options
	Follow    bool
	From, To  string            // range of time, see [logquery.TimeHelp]; empty means no bound
	Keys      map[string]string // keys of JSON by field, see [accesslog.Format.WithKeys]
	FailAbove float64           // maximum share of all lines that are not counted
	LateAbove float64           // maximum share of late lines of one log
}

// DefaultLate is the default of LateAbove. Clocks and buffers of servers explain a smaller share of late lines.
const DefaultLate = 0.001

// DefaultTolerance applies to logs that end, DefaultFollowTolerance to followed logs, where it delays every second.
const (
	DefaultTolerance       = 5 * time.Minute
	DefaultFollowTolerance = 10 * time.Second
	maxTolerance           = 24 * time.Hour
)

// Check reports all invalid options. It also sets the fields of Replay and Telemetry that depend on others.
func (j *Job) Check() error {
	var errs []error
	wrong := func(field, format string, args ...any) {
		errs = append(errs, &collector.OptionError{Package: "replay", Field: field, Err: fmt.Errorf(format, args...)})
	}
	o := &j.Replay
	// Require a file: a command that silently reads stdin looks as if it hung.
	if len(o.Files) == 0 {
		wrong("", "which access log? Give its files, or - for stdin")
	}
	for i, name := range o.Files {
		// Check patterns of followed logs only. The shell has expanded the patterns of others.
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
	// The naming options are the same as for the proxy. Derive the options of a replay from them.
	earned := j.Naming.Earned()
	o.Names, o.MaxResources = &earned, j.Naming.MaxResources
	if o.PathDepth = j.Naming.Depth; len(j.Naming.Routes.Patterns) > 0 || j.Naming.Loose {
		o.Name = j.Naming.Name()
	}
	j.Telemetry.Exporter.Collector.MaxResources = o.MaxResources
	return errors.Join(append(errs, j.Telemetry.Check())...)
}

// withKeys returns a JSON format that also reads the given keys. A nil format means json.
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

// files counts the calls of files that end. It prints the report and the summary even if there is an error.
func (j *Job) files(ctx context.Context, stdout, stderr io.Writer) (err error) {
	var archive *metriclog.Archive
	if j.Telemetry.Exporter.Log.Dir != "" {
		if archive, err = metriclog.NewArchive(j.Telemetry.MetricLog(stderr)); err != nil {
			return fmt.Errorf("--metric-log.dir: %w", err)
		}
	}
	// A replay has little live memory and much garbage, so collect less often.
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

// logRow converts a record to a row of the metric log.
func logRow(resource string, m *node.MetricNode) metriclog.Row {
	return metriclog.Row{
		Start: m.Start, Resource: resource, Pass: m.Pass, Block: m.Block, Success: m.Complete, Exception: m.Exception,
		OccupiedPass: m.OccupiedPass, RT: m.AvgRT(), Concurrency: m.InFlightMax,
	}
}

// longestGap limits how old the last second of a metric log may be if a replay continues it.
const longestGap = 24 * time.Hour

// follow follows the files and runs all exporters.
func (j *Job) follow(ctx context.Context, stdout, stderr io.Writer) error {
	// The metric log determines where to continue: its seconds are counted. No separate state exists that could
	// contradict it. Read its end first, because the Collector and the Follower need their first second when they are
	// created.
	after, err := j.after(stderr)
	if err != nil {
		return err
	}
	f, err := await(ctx, func() (*Follower, error) { return NewFollower(j.Replay, after) })
	if err != nil && ctx.Err() != nil {
		return nil // canceled while waiting for the first line
	}
	if err != nil {
		return err
	}
	// The lines determine the options of the Collector, and response times are unknown if the logs have no durations.
	x := &j.Telemetry.Exporter
	x.Collector = collector.Options{
		Now:              f.Clock.Now,
		Given:            j.Naming.Given(),
		MaxResources:     j.Naming.MaxResources,
		DurationsUnknown: !f.counts.Timed,
		OpenTelemetry:    x.Collector.OpenTelemetry,
	}
	x.Drain = -1 // no call completes after the reading has stopped
	t, err := telemetry.Start(&j.Telemetry, stderr)
	if err != nil {
		return errors.Join(err, f.Close())
	}
	t.Collector.Publish(f.Metrics()...)
	t.KeepNames(f.names.earned)
	fmt.Fprintf(stdout, "following   %s, %v behind\n%s",
		strings.Join(j.Replay.Files, ", "), j.Replay.Tolerance+ingestDelay, t.Banner)
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

// after returns the last second of the metric log, or the zero Time if the replay cannot continue there.
func (j *Job) after(stderr io.Writer) (time.Time, error) {
	last, err := j.Telemetry.LastLogged(stderr)
	// Most rotated files of more than a day ago are deleted. Counting the remaining ones would look like counting all
	// lines.
	if ago := time.Since(last); !last.IsZero() && ago >= longestGap {
		j.Replay.Note(fmt.Sprintf("the metric log ends %v ago, which is too long to continue it: "+
			"lines written since then are not counted", ago.Round(time.Minute)))
		last = time.Time{}
	}
	return last, err
}
