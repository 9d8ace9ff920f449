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

A resource is given by ` + patternHelp + `.

Formats of rows: table is for reading, with unprintable characters in names escaped. json is a line for each row, with the
names of the per-second metrics. csv has a header; names that a spreadsheet would calculate begin with an apostrophe there.
sentinel is as in the log. The last row of a second is all inbound traffic, __total_inbound_traffic__; leave it out of sums.

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
	query          metriclog.Query
	pids           []int
	zone           *time.Location
	print          func(io.Writer, *time.Location, bool) printer // nil for other formats
	several        bool                                          // logs are searched, or may be later
	following, sum bool
	fill           *fill // nil if no gap is to be filled
	stderr         io.Writer
}

func newSearch(c *cli.Context, now time.Time) (*search, error) {
	s := &search{
		Searcher: metriclog.Searcher{Dir: c.String("dir"), App: c.String("app")}, pids: c.IntSlice("pid"),
		following: c.Bool("follow"), sum: c.Bool("summary"), stderr: c.App.ErrWriter,
	}
	errs := []error{noArguments(c)}
	wrong := func(flag string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("--%s: %w", flag, err))
		}
	}
	var err error
	s.zone, err = parseZone(c.String("zone"))
	wrong("zone", err)
	if err != nil {
		s.zone = time.UTC // to go on and see what else is wrong
	}
	errs = append(errs, s.parseRange(c, now))
	s.query.Match, err = parsePatterns(c.StringSlice("resource"))
	errs = append(errs, err)
	format := c.String("format")
	s.print = printers[format]
	if s.print == nil && format != openMetrics {
		wrong("format", fmt.Errorf("%q is not one of %s, %s", format, strings.Join(slices.Sorted(maps.Keys(printers)), ", "), openMetrics))
	}
	s.fill, err = parseFill(c, format)
	errs = append(errs, err, s.checkLogs())
	if s.sum && c.IsSet("format") && format != "table" {
		wrong("summary", errors.New("is a table; leave --format out"))
	}
	for flag, with := range map[string]bool{"summary": s.sum, "format openmetrics": format == openMetrics, "remote-write": c.IsSet("remote-write"), "to": c.IsSet("to")} {
		if s.following && with {
			wrong("follow", fmt.Errorf("not with --%s, as it does not end", flag))
		}
	}
	if s.sum && c.IsSet("remote-write") {
		wrong("summary", errors.New("not with --remote-write"))
	}
	return s, errors.Join(errs...)
}

// parseRange reads from when to when. Of a time that clocks show twice, the first is the beginning and the last the end.
func (s *search) parseRange(c *cli.Context, now time.Time) error {
	var errs []error
	to, err := parseTime(timeFlag(c, "to", "now"), now, s.zone)
	if err != nil {
		errs = append(errs, fmt.Errorf("--to: %w", err))
	}
	begin := ends{first: to.last.Add(-defaultRange)}
	if s.following {
		begin.first = now.Truncate(time.Second)
	}
	if c.IsSet("from") {
		if begin, err = parseTime(c.String("from"), now, s.zone); err != nil {
			errs = append(errs, fmt.Errorf("--from: %w", err))
		}
	}
	if len(errs) == 0 && begin.first.After(to.last) {
		errs = append(errs, fmt.Errorf("--from: %s is after --to, %s", begin.first.In(s.zone).Format(timeLayout), to.last.In(s.zone).Format(timeLayout)))
	}
	s.query.From, s.query.To, s.query.PIDs = begin.first, to.last, s.pids
	if s.following {
		s.query.To = time.Time{}
	}
	return errors.Join(errs...)
}

func timeFlag(c *cli.Context, flag, otherwise string) string {
	if c.IsSet(flag) {
		return c.String(flag)
	}
	return otherwise
}

// checkLogs looks whether there is something to search.
func (s *search) checkLogs() error {
	if s.Dir == "" {
		return errors.New("--dir: the directory of the log is needed")
	}
	all, err := metriclog.Searcher{Dir: s.Dir}.Logs()
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
		return s.follow(ctx, s.print(stdout, s.zone, s.several))
	}
	sums := &summary{zone: s.zone}
	p := s.print(stdout, s.zone, s.several)
	rows, err := s.Search(s.query)
	if err != nil {
		return err
	}
	n := 0
	err = s.pass(ctx, rows, func(row *metriclog.Row) error {
		n++
		if s.sum {
			sums.add(row)
			return nil
		}
		return p.print(row)
	})
	s.sayMalformed(rows.Malformed())
	if err := errors.Join(err, rows.Err()); err != nil {
		_ = p.flush() // what there is; the error is another one
		return err
	}
	if n == 0 {
		s.sayEmpty()
	}
	if s.sum {
		return sums.write(stdout)
	}
	return p.flush()
}

// sayMalformed prints how many lines were left out.
func (s *search) sayMalformed(n int64) {
	if n > 0 {
		fmt.Fprintf(s.stderr, "windowstat: lines that were left out, because they are malformed or out of place: %d\n", n)
	}
}

// sayEmpty prints that there was nothing, and when there is something.
func (s *search) sayEmpty() {
	what := "no rows"
	if s.query.Match != nil {
		what = "no rows of these resources"
	}
	show := func(t time.Time) string { return t.In(s.zone).Format(timeLayout) }
	fmt.Fprintf(s.stderr, "windowstat: %s from %s to %s", what, show(s.query.From), show(s.query.To))
	for _, q := range []struct {
		says string
		from time.Time
	}{{"the log begins at", time.Time{}}, {"the next row is of", s.query.To.Add(time.Second)}} {
		rows, err := s.Search(metriclog.Query{From: q.from})
		if err != nil {
			continue
		}
		for row := range rows.All() {
			fmt.Fprintf(s.stderr, "; %s %s", q.says, show(row.Start))
			break
		}
		_ = rows.Close()
	}
	fmt.Fprintln(s.stderr)
}
