package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// openMetrics is the format that is no format of rows.
const openMetrics = "openmetrics"

// defaultRange is how much is searched if nobody says from when.
const defaultRange = 15 * time.Minute

func logCommand() *cli.Command {
	formats := strings.Join(append(slices.Sorted(maps.Keys(printers)), openMetrics), ", ")
	return &cli.Command{
		Name:  "log",
		Usage: "search the metric log, convert it, and fill gaps of a database from it",
		Description: `The rows from --from to --to, both included, are printed: those of the last 15 minutes if there is neither. A time is one of
  ` + timeHelp + `.
Times without an offset are those of --zone, and those without a date are today's.

A day, such as yesterday or 2026-01-02, is all of it: its first second in --from, and its last one in --to.

A resource is given by ` + patternHelp + `.
A condition of --where is ` + whereHelp + `.
The columns are ` + columnNames(false) + `. It chooses among the rows of single seconds, before they are added up.

Formats of rows: table is for reading, with unprintable characters in names escaped. json is a line for each row, with the
names of the per-second metrics. csv has a header; names that a spreadsheet would calculate begin with an apostrophe there.
sentinel is the lines of the log, byte for byte, without regard to --zone. The last row of a second is all inbound traffic,
__total_inbound_traffic__; leave it out of sums.

--step and --top add rows up, by application and resource. Steps are counted from midnight in --zone; the first and the last may
be cut by --from and --to. Counts are sums; in_flight_max is the highest of a second in one process; rt_avg is the average of all
calls, at most 1ms too low, as the log has whole milliseconds. Quantiles do not add up, so there are none. peak and its time are
the busiest second, the first if several are: that with most of the column --by. --top leaves out __total_inbound_traffic__.

A gap that an outage left in Prometheus, where the service was scraped with --label job and instance, is filled so:
  windowstat log --dir DIR --from 03:04 --to 03:10 --label job=shop-seconds --label instance=shop:9719 \
    --remote-write http://prometheus:9090/api/v1/write
if it is recent and the server has an out_of_order_time_window, or, if it is older than three hours, with
    --format openmetrics > gap.om && promtool tsdb create-blocks-from openmetrics gap.om /prometheus/data

Exit status 1 means that something could not be read or written, 2 that the arguments are wrong.`,
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "dir", Usage: "`DIRECTORY` of the log (required)"},
			&cli.StringFlag{Name: "app", Usage: "`NAME` of the application; all in the directory by default"},
			&cli.IntSliceFlag{Name: "pid", Usage: "`NUMBER` of a process, where it is in the files' names; all by default; repeatable"},
			&cli.StringFlag{Name: "from", Usage: "`TIME` of the first second; by default 15 minutes before --to, and with --follow now"},
			&cli.StringFlag{Name: "to", Usage: "`TIME` of the last second (default: now)"},
			&cli.StringFlag{Name: "zone", Value: "local", Usage: "`ZONE` of times that are given and printed: local, UTC, or a name such as Europe/Berlin"},
			&cli.StringSliceFlag{Name: "resource", Usage: "`RESOURCE` that is wanted, see above; all by default; repeatable"},
			&cli.StringFlag{Name: "format", Value: "table", Usage: "`FORMAT`: " + formats},
			&cli.BoolFlag{Name: "follow", Usage: "go on with new rows, of all processes, until interrupted"},
			&cli.BoolFlag{Name: "summary", Usage: "print sums for each resource in the place of rows"},
			&cli.StringSliceFlag{Name: "where", Usage: "`CONDITION` that a row must meet, such as block>0; repeatable, and all must be met"},
			&cli.DurationFlag{Name: "step", Usage: "print sums for each `DURATION`, such as 1m, in the place of rows"},
			&cli.IntFlag{Name: "top", Usage: "print sums for the `NUMBER` of resources with most of --by; with --step, in each step"},
			&cli.StringFlag{Name: "by", Value: "pass", Usage: "`COLUMN` for --top and for the busiest second: " + columnNames(true)},
			&cli.IntFlag{Name: "n", Usage: "print only the last `NUMBER` of rows, as tail -n does"},
		}, fillFlags()...),
		Action: func(c *cli.Context) error {
			s, err := newSearch(c, time.Now())
			if err != nil {
				return usage(err)
			}
			return s.run(c.Context, c.App.Writer)
		},
	}
}

// search is what is wanted of the log.
type search struct {
	metriclog.Searcher
	query metriclog.Query
	pids  []int
	shown
	print          func(io.Writer, shown) printer // nil for other formats
	following, sum bool
	where          func(*metriclog.Row) bool // nil for all
	step           time.Duration             // 0 for none
	top, tail      int                       // 0 for all
	by             *column
	fill           *fill // nil if no gap is to be filled
	asked          asked
	stderr         io.Writer
}

func newSearch(c *cli.Context, now time.Time) (*search, error) {
	s := &search{
		Searcher: metriclog.Searcher{Dir: c.String("dir"), App: c.String("app")}, pids: c.IntSlice("pid"),
		following: c.Bool("follow"), sum: c.Bool("summary"), step: c.Duration("step"), top: c.Int("top"), tail: c.Int("n"),
		asked: asked{resources: c.StringSlice("resource"), where: c.StringSlice("where")}, stderr: c.App.ErrWriter,
	}
	s.peaks = c.IsSet("step") || c.IsSet("top")
	errs := flagErrors{noArguments(c)}
	var err error
	s.zone, err = parseZone(c.String("zone"))
	errs.add("zone", err)
	if err != nil {
		s.zone = time.UTC // to go on and see what else is wrong
	}
	errs = append(errs, s.parseRange(c, now))
	s.query.Match, err = parsePatterns(c.StringSlice("resource"))
	errs = append(errs, err)
	s.query.Match = s.asked.match(s.query.Match)
	s.where, err = parseWhere(s.asked.where)
	errs = append(errs, err)
	s.by, err = parseColumn(c.String("by"), true)
	errs.add("by", err)
	format := c.String("format")
	s.print = printers[format]
	if s.print == nil && format != openMetrics {
		errs.add("format", fmt.Errorf("%q is not one of %s, %s", format, strings.Join(slices.Sorted(maps.Keys(printers)), ", "), openMetrics))
	}
	s.fill, err = parseFill(c, format)
	errs = append(errs, err, s.checkLogs())
	if s.sum && c.IsSet("format") && format != "table" {
		errs.add("summary", errors.New("is a table; leave --format out"))
	}
	if c.IsSet("step") {
		errs.add("step", checkStep(s.step))
	}
	for _, flag := range []string{"top", "n"} { // in the same order each time
		if n := c.Int(flag); c.IsSet(flag) && n < 1 {
			errs.add(flag, fmt.Errorf("%d is not at least 1", n))
		}
	}
	if c.IsSet("by") && !s.peaks {
		errs.add("by", errors.New("needs --top or --step"))
	}
	given := func(flag string) bool {
		return c.IsSet(flag) && (c.Bool(flag) || flag != "follow" && flag != "summary")
	}
	fills := "format openmetrics"
	if c.IsSet("remote-write") {
		fills = "remote-write"
	}
	for _, x := range []struct{ flag, other, why string }{
		{"follow", "to", ", as it does not end"},
		{"follow", "summary", ", as it does not end"},
		{"follow", "step", ", as it does not end"},
		{"follow", "top", ", as it does not end"},
		{"follow", "n", ", as it does not end"},
		{"follow", fills, ", as it does not end"},
		{"summary", "step", ""},
		{"summary", "top", ""},
		{"summary", "n", ""},
		{"summary", fills, ""},
		{"where", fills, ", which needs all rows"},
		{"step", fills, ", which needs single seconds"},
		{"top", fills, ", which needs single seconds"},
		{"n", fills, ", which needs all rows"},
		{"step", "format " + sentinelFormat, ", whose lines are those of the log"},
		{"top", "format " + sentinelFormat, ", whose lines are those of the log"},
	} {
		name, value, _ := strings.Cut(x.other, " ")
		if given(x.flag) && given(name) && (value == "" || value == format) {
			errs.add(x.flag, fmt.Errorf("not with %s%s", dashed(x.other), x.why))
		}
	}
	if c.IsSet("n") && c.IsSet("top") && !c.IsSet("step") {
		errs.add("n", errors.New("not with --top, which says how many"))
	}
	return s, errors.Join(errs...)
}

// dashed is a flag as it is given.
func dashed(flag string) string {
	if len(flag) == 1 {
		return "-" + flag
	}
	return "--" + flag
}

// checkLogs looks whether there is something to search.
func (s *search) checkLogs() error {
	if s.Dir == "" {
		return errors.New("--dir: the directory of the log is needed")
	}
	all, err := metriclog.Searcher{Dir: s.Dir}.Logs()
	if errors.Is(err, os.ErrNotExist) && s.following {
		s.several = s.App == ""
		return nil
	}
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("--dir: there is no %s", s.Dir)
	}
	if err != nil {
		return fmt.Errorf("--dir: %w", err)
	}
	if len(all) == 0 && !s.following {
		return fmt.Errorf("--dir: there are no metric logs in %s", s.Dir)
	}
	logs, err := s.Logs()
	if err != nil {
		return fmt.Errorf("--dir: %w", err)
	}
	if len(logs) == 0 && !s.following {
		return fmt.Errorf("--app: there is no log of %q in %s, but of %s", s.App, s.Dir, list(apps(all)))
	}
	s.several = len(logs) > 1 || s.following && s.App == ""
	for _, pid := range s.pids {
		if !s.following && !slices.ContainsFunc(logs, func(l metriclog.Log) bool { return l.PID == pid }) {
			return fmt.Errorf("--pid: there is no log of process %d, but %s", pid, list(logs))
		}
	}
	if s.fill != nil {
		return oneApp(apps(logs))
	}
	return nil
}

// apps are the applications of logs, sorted.
func apps(logs []metriclog.Log) (names []string) {
	for _, l := range logs {
		names = append(names, l.App)
	}
	return slices.Compact(names)
}

// list is some of the things, for a message.
func list[T any](things []T) string {
	const most = 20
	var names []string
	for i, x := range things {
		if i == most {
			names = append(names, fmt.Sprintf("%d more", len(things)-most))
			break
		}
		names = append(names, visible(fmt.Sprint(x)))
	}
	return strings.Join(names, ", ")
}

// ofProcess reports whether rows of a process are wanted.
func (s *search) ofProcess(pid int) bool { return len(s.pids) == 0 || slices.Contains(s.pids, pid) }

// run prints what is wanted. A reader of the output may close it at any time without an error.
func (s *search) run(ctx context.Context, stdout io.Writer) error {
	signal.Ignore(syscall.SIGPIPE) // writing fails then, and does not end the program
	err := s.answer(ctx, stdout)
	switch {
	case errors.Is(err, syscall.EPIPE):
		return nil
	case errors.Is(err, context.Canceled): // in the user's words
		return errors.New(strings.ReplaceAll(err.Error(), context.Canceled.Error(), "interrupted"))
	}
	return err
}

func (s *search) answer(ctx context.Context, stdout io.Writer) error {
	switch {
	case s.fill != nil:
		return s.fillGap(ctx, stdout)
	case s.following:
		return s.follow(ctx, s.print(stdout, s.shown))
	}
	p := s.printer(stdout)
	rows, err := s.Search(s.query)
	if err != nil {
		return err
	}
	found, err := s.pass(ctx, rows, p.print)
	s.sayMalformed(rows.Malformed())
	if err := errors.Join(err, rows.Err()); err != nil {
		_ = p.flush() // what there is; the error is another one
		return err
	}
	if found.printed == 0 {
		s.sayEmpty(found.all)
	}
	return p.flush()
}

// printer is what the rows go through.
func (s *search) printer(stdout io.Writer) printer {
	if s.sum {
		return &summaryPrinter{summary{zone: s.zone}, stdout}
	}
	p := s.print(stdout, s.shown)
	if s.tail > 0 {
		p = &lastRows{printer: p, most: s.tail}
	}
	if s.peaks {
		p = &steps{printer: p, zone: s.zone, step: s.step, top: s.top, by: s.by, begin: s.query.From, totals: totals{by: s.by}}
	}
	return p
}

// sayMalformed prints how many lines were left out.
func (s *search) sayMalformed(n int64) {
	if n > 0 {
		fmt.Fprintf(s.stderr, "windowstat: lines that were left out, because they are malformed or out of place: %d\n", n)
	}
}
