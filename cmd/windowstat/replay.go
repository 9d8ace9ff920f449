package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/accesslog"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/logquery"
	"github.com/windowstat/windowstat/cmd/windowstat/internal/replay"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/httpstat"
	"github.com/windowstat/windowstat/exporter/metriclog"
	"github.com/windowstat/windowstat/node"
)

func replayCommand() *cli.Command {
	return &cli.Command{
		Name:      "replay",
		Usage:     "count the calls that an access log tells of, second by second, in their own time",
		ArgsUsage: "FILE…, or - for stdin",
		Description: `Prints a summary, and writes a metric log with --metric-log.dir, which "windowstat log" reads. Files may be packed with
gzip or zstd, and be given in any order: those of one time are merged. What they look like is guessed, unless a
format is given. Lines may be out of order by the tolerance. Those that are later, or from the future, or far ahead of those
around them, are not counted but reported; a log of which one line in a thousand is late is an error that names it.

The resource of a line is the route that it matches, or its method and path, as in "windowstat proxy": until the service has
answered a name with success, its calls count for the resource unmatched; --routes makes names exact from their first call.
Each line is read once. A call passes in the second in which it began and completes in the one in which it ended. Without a
duration in the log both are the second of the line, and there are no response times.

With --follow files are read as they grow, from their ends on and through rotation, and their calls are served like those of
one service, a second more than the tolerance behind the present. A quoted pattern such as '/var/log/nginx/*.log' stands for
the files that match it, also for those that appear later, which are read from their beginnings. With --metric-log.dir a
restart goes on where the metric log ends, if that is within a day, with what was rotated away meanwhile, and counts nothing
twice; without it, what was written meanwhile is not counted. Rotated files are found beside the log, beside the file to which it
leads if it is a symbolic link, and in --rotated-dir. Of a file that is truncated, the rest is read from its copy.
Lines written between the two are lost. Lines that a server keeps for longer than the tolerance are late.`,
		Flags: slices.Concat([]cli.Flag{
			&cli.StringFlag{Name: "format", Usage: "`NAME` of the lines' format: " + strings.Join(accesslog.Names(), ", ") + " (default: a guess for each file)"},
			&cli.StringFlag{Name: "nginx-format", Usage: "`STRING` of nginx's log_format"},
			&cli.StringFlag{Name: "apache-format", Usage: "`STRING` of Apache's LogFormat"},
			&cli.StringFlag{Name: "zone", Value: "UTC", Usage: "`ZONE` of times without one, such as Europe/Berlin or Local"},
			&cli.DurationFlag{Name: "tolerance", Usage: "`DURATION` by which lines may be out of order, in whole seconds", DefaultText: "5m0s; 10s with --follow"},
			&cli.BoolFlag{Name: "follow", Usage: "read files as they grow, and serve their calls"},
			&cli.StringFlag{Name: "exception-status", Value: "5xx", Usage: "`STATUSES` of calls that failed, such as 5xx,404 or 500-503"},
			&cli.StringFlag{Name: "block-status", Value: "429", Usage: "`STATUSES` of calls that were refused, and so did not pass"},
			&cli.IntFlag{Name: "path-depth", Value: httpstat.DefaultDepth, Usage: "how many segments of a path a resource's name keeps"},
			&cli.IntFlag{Name: "max-resources", Value: collector.DefaultMaxResources, Usage: "how many resources are kept apart beside routes; calls of all others are counted together, as _other"},
			&cli.Float64Flag{Name: "fail-above", Value: 0.1, Usage: "`SHARE` of lines that are not counted, from 0 to 1, above which the exit status is 1; also of the lines of one log that are late, 0.001 if it is not given"},
			&cli.StringSliceFlag{Name: "rotated-dir", Usage: "`DIRECTORY` into which rotation moves files, besides that of the log, with --follow; repeatable"},
			&cli.StringFlag{Name: "metric-log.app", Value: "replay", Usage: "`NAME` of the application in the metric log"},
		}, namingFlags(), telemetryFlags()),
		Action: func(c *cli.Context) error {
			r, err := newReplay(c)
			if err != nil {
				return usage(err)
			}
			if r.follow {
				return r.serve(c)
			}
			return r.run(c)
		},
	}
}

// replaying is a replay of files, or of some that are followed.
type replaying struct {
	settings
	naming
	options   replay.Options
	follow    bool
	failAbove float64
	lateAbove float64 // of the lines of one log
}

// lateShare is the share of a log's lines that may be late, if none is given.
const lateShare = 0.001

// Tolerances, if none is given.
const (
	toleranceOfFiles     = 5 * time.Minute
	toleranceOfFollowing = 10 * time.Second
)

func newReplay(c *cli.Context) (r replaying, err error) {
	var errs flagErrors
	r.settings, err = parseSettings(c, c.App.ErrWriter)
	errs = append(errs, err)
	if r.follow = c.Bool("follow"); !r.follow {
		for _, f := range telemetryFlags() {
			if name := f.Names()[0]; name != "metric-log.dir" && c.IsSet(name) {
				errs = append(errs, fmt.Errorf("--%s needs --follow", name))
			}
		}
	}
	o := &r.options
	o.Note = func(text string) { fmt.Fprintf(c.App.ErrWriter, "windowstat: %s\n", text) }
	o.Files, o.Stdin = c.Args().Slice(), c.App.Reader
	if len(o.Files) == 0 {
		errs = append(errs, errors.New("which access log? Give its files, or - for stdin"))
	}
	for i, name := range o.Files {
		if _, err := filepath.Match(name, ""); err != nil && r.follow {
			errs = append(errs, fmt.Errorf("%s: %w, such as a [ without a ]", name, err))
		}
		if len(name) > 1 && name[0] == '-' {
			errs = append(errs, fmt.Errorf("%s: flags stand before the files; a file of this name is ./%s", name, name))
		}
		if other := slices.IndexFunc(o.Files[:i], func(x string) bool { return sameFile(x, name) }); other >= 0 {
			errs = append(errs, twice(o.Files[other], name))
		}
	}
	o.Format, err = parseFormat(c)
	errs = append(errs, err)
	o.Zone, err = time.LoadLocation(c.String("zone"))
	if err != nil {
		errs.add("zone", fmt.Errorf("%q is not a time zone, such as UTC, Local or Europe/Berlin", c.String("zone")))
	}
	if o.Tolerance = c.Duration("tolerance"); !c.IsSet("tolerance") {
		o.Tolerance = toleranceOfFiles
		if r.follow {
			o.Tolerance = toleranceOfFollowing
		}
	}
	const longest = 24 * time.Hour
	if o.Tolerance < 0 || o.Tolerance > longest || o.Tolerance%time.Second != 0 {
		errs.add("tolerance", fmt.Errorf("%v is not whole seconds from 0s to %v", o.Tolerance, longest))
	}
	o.Exceptions, err = replay.ParseStatuses(c.String("exception-status"))
	errs.add("exception-status", err)
	o.Blocks, err = replay.ParseStatuses(c.String("block-status"))
	errs.add("block-status", err)
	if status, both := o.Exceptions.Common(&o.Blocks); both {
		errs.add("block-status", fmt.Errorf("%d is in --exception-status, too", status))
	}
	r.naming, err = parseNaming(c, "path-depth")
	errs = append(errs, err)
	o.Names, o.Given = &r.earn, r.given()
	if len(r.routes.Patterns) > 0 {
		o.Route = r.routes.Name
	}
	if !r.only {
		o.PathDepth = c.Int("path-depth")
	}
	o.RotatedDirs = c.StringSlice("rotated-dir")
	for _, dir := range o.RotatedDirs {
		if at, err := os.Stat(dir); err != nil || !at.IsDir() {
			errs.add("rotated-dir", fmt.Errorf("%s is not a directory", dir))
		}
	}
	if len(o.RotatedDirs) > 0 && !r.follow {
		errs.add("rotated-dir", errors.New("needs --follow"))
	}
	o.MaxResources = c.Int("max-resources")
	r.Collector.MaxResources = o.MaxResources
	if r.failAbove = c.Float64("fail-above"); !(r.failAbove >= 0 && r.failAbove <= 1) {
		errs.add("fail-above", fmt.Errorf("%v is not between 0 and 1", r.failAbove))
	}
	if r.lateAbove = lateShare; c.IsSet("fail-above") {
		r.lateAbove = r.failAbove
	}
	r.App = c.String("metric-log.app")
	if r.Log.Dir == "" && c.IsSet("metric-log.app") {
		errs.add("metric-log.app", errors.New("needs --metric-log.dir"))
	}
	return r, errors.Join(append(errs, r.check())...)
}

// sameFile reports whether two names are those of one log.
func sameFile(a, b string) bool {
	if a == b {
		return true
	}
	x, err := os.Stat(a)
	y, err2 := os.Stat(b)
	return err == nil && err2 == nil && a != "-" && b != "-" && os.SameFile(x, y)
}

func twice(a, b string) error {
	if a == b {
		return fmt.Errorf("%s is given twice", a)
	}
	return fmt.Errorf("%s and %s are the same file", a, b)
}

// parseFormat is the format that the flags say, nil for a guess.
func parseFormat(c *cli.Context) (format *accesslog.Format, err error) {
	var errs []error
	var set []string
	for _, f := range []struct {
		flag string
		make func(string) (*accesslog.Format, error)
	}{
		{"format", accesslog.Named},
		{"nginx-format", accesslog.Nginx},
		{"apache-format", accesslog.Apache},
	} {
		if !c.IsSet(f.flag) {
			continue
		}
		set = append(set, "--"+f.flag)
		if format, err = f.make(c.String(f.flag)); err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", f.flag, err))
		}
	}
	if len(set) > 1 {
		errs = append(errs, fmt.Errorf("%s: one of them says what the lines look like", strings.Join(set, ", ")))
	}
	return format, errors.Join(errs...)
}

// logOptions are those of a log that is written without an Exporter.
func (r *replaying) logOptions() metriclog.Options {
	o := r.Log
	o.App, o.Logger = r.App, r.logger
	return o
}

func (r *replaying) run(c *cli.Context) (err error) {
	var archive *metriclog.Archive
	if r.Log.Dir != "" {
		if archive, err = metriclog.NewArchive(r.logOptions()); err != nil {
			return fmt.Errorf("--metric-log.dir: %w", err)
		}
	}
	// Few megabytes are in use, and much is thrown away.
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	progress := newProgress(c.App.ErrWriter)
	r.options.Progress = progress.show
	sum := logquery.NewSummary(r.options.Zone)
	report, err := replay.Run(c.Context, r.options, func(s *replay.Second) error {
		for i := range s.Rows {
			sum.Add(rowOf(s.Rows[i].Resource, &s.Rows[i].MetricNode))
		}
		sum.Add(rowOf(collector.InboundTotal, &s.Total))
		if archive == nil {
			return nil
		}
		return archive.Append(s.Start, func(yield func(string, *node.MetricNode) bool) {
			for i := range s.Rows {
				if !yield(s.Rows[i].Resource, &s.Rows[i].MetricNode) {
					return
				}
			}
			yield(collector.InboundTotal, &s.Total)
		})
	})
	progress.end()
	if archive != nil {
		err = errors.Join(err, archive.Close())
	}
	if report.Lines == 0 && err != nil {
		return err
	}
	return errors.Join(err, report.Print(c.App.Writer, c.App.ErrWriter), sum.Write(c.App.Writer), report.TooMany(r.failAbove, r.lateAbove))
}

// rowOf is a record as the log has it, with all of its response time.
func rowOf(resource string, m *node.MetricNode) *metriclog.Row {
	return &metriclog.Row{
		Start: m.Start, Resource: resource, Pass: m.Pass, Block: m.Block, Success: m.Complete, Exception: m.Exception,
		OccupiedPass: m.OccupiedPass, RT: m.AvgRT(), Concurrency: m.InFlightMax,
	}
}
