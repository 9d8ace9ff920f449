package replay

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/accesslog"
	"github.com/windowstat/windowstat/collector"
)

// Report counts log lines by outcome. Each line is in Lines and in at most one of the fields that exclude it:
//
//	Lines = calls + Malformed + Late + Future + Outliers    lines that could be calls
//	      + Others + Outside                                lines that cannot be calls, or are out of range
//
// The other fields count calls with a property, such as Clipped or Unearned, or events of a log, such as Truncated.
type Report struct {
	Lines     int64
	Malformed int64  // could be a call, but cannot be parsed
	Late      int64  // later than the tolerance
	Future    int64  // from the future
	Outliers  int64  // far ahead of the lines around them
	Others    Others // not calls
	Outside   int64  // not between Options.From and Options.To
	Clipped   int64  // calls that started in an ended second, and pass in the oldest open one
	Unearned  int64  // calls counted as unmatched, because their name was not earned
	Truncated int64  // truncations of followed logs; lines written between the copy and the truncation may be lost
	Cut       int64  // bytes that were seen and removed before they were read; their lines are in no field
	Evicted   int64  // seconds that ended before the tolerance, because the replay held too many calls
	// Lines in an hour that occurs twice when clocks are set back. They count in the hour nearer to the previous line.
	Ambiguous int64
	Statuses  [1000]int64 // counted lines by status
	Examples  []Example   // of malformed lines
	Behind    []Behind    // logs with late lines, the log with most of them first
	Timed     bool        // the logs have durations
}

// Others counts the lines that are not calls, by kind.
type Others [accesslog.Kinds]int64

func sum(o Others) (n int64) {
	for _, of := range o {
		n += of
	}
	return n
}

// Behind is a log with late lines. Either the clocks of this log and of another log differ by more than the tolerance,
// or the log consists of several logs that are not in the order of time. Lines does not include Others.
type Behind struct {
	Log         string
	Lines, Late int64
}

// Example is a malformed line.
type Example struct {
	File string
	Line int64
	Text string // its beginning
	Err  error
}

// maxExamples is the number of malformed lines that are kept for each log, allExamples for all logs together.
const (
	maxExamples = 3
	allExamples = 10
)

// calls returns the number of lines that could be calls.
func (r *Report) calls() int64 { return r.Lines - sum(r.Others) - r.Outside }

// Uncounted returns the number of lines that could be calls and are not counted.
func (r *Report) Uncounted() int64 { return r.Malformed + r.Late + r.Future + r.Outliers }

// Report returns a copy of the current counts. It is safe for concurrent use.
func (r *Follower) Report() *Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	x := r.counts
	for _, b := range r.behind {
		x.Behind = append(x.Behind, *b)
	}
	slices.SortStableFunc(x.Behind, func(a, b Behind) int { return cmp.Compare(b.Late, a.Late) })
	return &x
}

// Print writes the counts to stdout, and examples of malformed lines to stderr. Counts of zero are left out.
func (r *Report) Print(stdout, stderr io.Writer) error {
	for _, x := range r.Examples {
		fmt.Fprintf(stderr, "windowstat: %s:%d: %v: %.120q\n", x.File, x.Line, x.Err, x.Text)
	}
	var b strings.Builder
	line := func(n int64, what string) {
		if n > 0 {
			fmt.Fprintf(&b, "%12d %s\n", n, what)
		}
	}
	fmt.Fprintf(&b, "%12d lines\n", r.Lines)
	line(r.Others[accesslog.Empty], "empty lines")
	line(r.Others[accesslog.Directive], "directives, which begin with #")
	line(r.Others[accesslog.Message], "messages of a server or a script, which are not calls")
	line(r.Outside, "lines outside of --from and --to")
	line(r.Malformed, "malformed lines, not counted")
	line(r.Late, "late lines, later than the tolerance, not counted")
	// Name every log with late lines, even if they are few compared with the lines of all logs.
	for _, x := range r.Behind[:min(len(r.Behind), allExamples)] {
		line(x.Late, fmt.Sprintf("late lines in %s (of %d)", x.Log, x.Lines))
	}
	line(r.Future, "lines from the future, not counted")
	line(r.Outliers, "lines far ahead of the lines around them, not counted")
	line(r.Unearned, "calls counted for unmatched, because no call of their name had succeeded before")
	line(r.Clipped, "calls that began before the tolerance, and pass in the oldest open second")
	line(r.Truncated, "truncations of a log; lines between the copy and the truncation are not counted")
	line(r.Cut, "bytes removed before they were read; their lines are not counted")
	line(r.Ambiguous, "lines in an hour that clocks showed twice, counted in the hour nearer to the line before")
	line(r.Evicted, "seconds ended before the tolerance, because they had too many calls to hold")
	for status, n := range r.Statuses {
		line(n, fmt.Sprintf("calls with status %03d", status))
	}
	if r.Lines > 0 && !r.Timed {
		b.WriteString("             the log has no durations, so response times and calls in flight are unknown\n")
	}
	b.WriteByte('\n')
	_, err := io.WriteString(stdout, b.String())
	return err
}

// TooMany returns an error if the uncounted share of all lines is greater than most, or if the late share of the lines
// of one log is greater than mostLate. Lines that cannot be calls are in neither share.
func (r *Report) TooMany(most, mostLate float64) error {
	var errs []error
	// A few malformed lines are normal. Many of them mean that the format is wrong.
	if float64(r.Uncounted()) > most*float64(r.calls()) {
		err := fmt.Errorf("%d of %d lines are not counted; --fail-above is %v", r.Uncounted(), r.calls(), most)
		errs = append(errs, err)
	}
	for _, x := range r.Behind {
		if float64(x.Late) > mostLate*float64(x.Lines) {
			errs = append(errs, fmt.Errorf("%s: %d of %d lines are later than the tolerance; "+
				"if the server buffers its log (buffer=, flush=) or clocks differ, increase --tolerance; "+
				"if the file joins several logs, give each log as a separate file", x.Log, x.Late, x.Lines))
		}
	}
	return errors.Join(errs...)
}

// Metrics returns the metrics that a Follower publishes on its Collector, which count lines by outcome.
func (r *Follower) Metrics() []collector.Metric {
	count := func(name, help string, of func(*Report) int64) collector.Metric {
		return collector.Metric{
			Name: name,
			Help: help,
			Read: func(yield func(float64, ...string)) { yield(float64(of(r.Report()))) },
		}
	}
	return []collector.Metric{
		{
			Name: "replay_lines_total", Labels: []string{"result"},
			Help: "Lines of the followed access logs that could be calls: counted, malformed, later than the " +
				"tolerance (late), far ahead of the lines around them (outlier), or from the future. " +
				"Only counted lines are calls.",
			Read: func(yield func(float64, ...string)) {
				r := r.Report()
				yield(float64(r.calls()-r.Uncounted()), "counted")
				yield(float64(r.Malformed), "malformed")
				yield(float64(r.Late), "late")
				yield(float64(r.Outliers), "outlier")
				yield(float64(r.Future), "future")
			},
		},
		{
			Name: "replay_other_lines_total", Labels: []string{"kind"},
			Help: "Lines of the followed access logs that are not calls: " +
				"empty lines, directives, which begin with #, and messages of a server or a script.",
			Read: func(yield func(float64, ...string)) {
				others := r.Report().Others
				for kind := accesslog.Empty; kind < accesslog.Kinds; kind++ {
					yield(float64(others[kind]), kind.String())
				}
			},
		},
		count("replay_truncations_total",
			"Truncations of followed access logs. Lines written between the copy and the truncation may be lost.",
			func(r *Report) int64 { return r.Truncated }),
		count(
			"replay_cut_bytes_total",
			"Bytes of followed access logs that existed and were removed before they were read. Their lines are not "+
				"counted.",
			func(r *Report) int64 { return r.Cut },
		),
	}
}
