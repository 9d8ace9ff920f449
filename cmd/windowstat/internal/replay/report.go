package replay

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/windowstat/windowstat/collector"
)

// Report counts lines by what became of them. Each line is in Lines, and in one of the other numbers at most that say that it is not counted,
// so what is counted and what is not add up to what was read.
type Report struct {
	Lines     int64
	Malformed int64       // not readable
	Late      int64       // later than the tolerance: not counted
	Future    int64       // from the future: not counted
	Outliers  int64       // far ahead of the lines around them: not counted
	Clipped   int64       // of calls that began in a second that had ended: they pass in the first open one
	Unearned  int64       // counted for unmatched, because their name was not earned
	Truncated int64       // how often a log that is followed was truncated: what is written between copy and truncation may be lost
	Cut       int64       // bytes that were seen, and cut off before they were read: not counted
	Evicted   int64       // seconds ended before the tolerance was over, because too many calls were held
	Ambiguous int64       // of an hour that comes twice when clocks are set back: taken for the one nearer to the line before
	Statuses  [1000]int64 // counted lines by status
	Examples  []Example   // of malformed lines
	Behind    []Behind    // logs with late lines, most of them first
	Timed     bool        // the logs have durations
}

// Behind is a log with lines that are later than the tolerance: the clocks of its lines and those of other logs are too far apart,
// or it is several logs put together, not in the order of time.
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

// maxExamples is how many malformed lines of each log are kept, and allExamples of all.
const (
	maxExamples = 3
	allExamples = 10
)

// Uncounted is how many lines are not counted.
func (r *Report) Uncounted() int64 { return r.Malformed + r.Late + r.Future + r.Outliers }

// Report is a copy of what was counted so far.
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

// Print says what became of the lines, and on stderr which could not be read.
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
	line(r.Malformed, "could not be read, and are not counted")
	line(r.Late, "later than the tolerance, and are not counted")
	// A log that is behind is named, however few its lines are among those of the others.
	for _, x := range r.Behind[:min(len(r.Behind), allExamples)] {
		line(x.Late, fmt.Sprintf("of these are among the %d of %s", x.Lines, x.Log))
	}
	line(r.Future, "from the future, and are not counted")
	line(r.Outliers, "far ahead of the lines around them, and are not counted")
	line(r.Unearned, "for unmatched, because no call of their name had succeeded")
	line(r.Clipped, "began before the tolerance, and pass in the first second that was still open")
	line(r.Truncated, "times the log was truncated: what came between its copy and that is not counted")
	line(r.Cut, "bytes were cut off before they were read, and their lines are not counted")
	line(r.Ambiguous, "of an hour that comes twice when clocks are set back: taken for the one nearer to the line before")
	line(r.Evicted, "seconds were ended before the tolerance was over, because there were too many calls to hold")
	for status, n := range r.Statuses {
		line(n, fmt.Sprintf("with status %03d", status))
	}
	if r.Lines > 0 && !r.Timed {
		b.WriteString("             no durations in the log, as its format is read: response times and concurrency are not known\n")
	}
	b.WriteByte('\n')
	_, err := io.WriteString(stdout, b.String())
	return err
}

// TooMany is the error if a greater share of all lines than most is not counted, or a greater share of the lines of one log than
// mostLate is late.
func (r *Report) TooMany(most, mostLate float64) error {
	var errs []error
	// Few lines that cannot be read are in every log; many mean that it is not read as what it is.
	if float64(r.Uncounted()) > most*float64(r.Lines) {
		errs = append(errs, fmt.Errorf("%d of %d lines are not counted; --fail-above is %v", r.Uncounted(), r.Lines, most))
	}
	for _, x := range r.Behind {
		if float64(x.Late) > mostLate*float64(x.Lines) {
			errs = append(errs, fmt.Errorf("%s: %d of %d lines are later than the tolerance; logs that were put together out of order are given as files of their own, clocks that differ need a longer --tolerance",
				x.Log, x.Late, x.Lines))
		}
	}
	return errors.Join(errs...)
}

// Metrics are what a Follower publishes on its Collector: what became of the lines so far.
func (r *Follower) Metrics() []collector.Metric {
	count := func(name, help string, of func(*Report) int64) collector.Metric {
		return collector.Metric{Name: name, Help: help, Read: func(yield func(float64, ...string)) { yield(float64(of(r.Report()))) }}
	}
	return []collector.Metric{
		{
			Name: "replay_lines_total", Labels: []string{"result"},
			Help: "Lines of the access logs that are followed: counted, malformed, later than the tolerance (late), far ahead of the lines around them (outlier), or from the future; only counted ones are calls.",
			Read: func(yield func(float64, ...string)) {
				r := r.Report()
				yield(float64(r.Lines-r.Uncounted()), "counted")
				yield(float64(r.Malformed), "malformed")
				yield(float64(r.Late), "late")
				yield(float64(r.Outliers), "outlier")
				yield(float64(r.Future), "future")
			},
		},
		count("replay_truncations_total", "How often access logs that are followed were truncated. What is written between the copy and the truncation may be lost.",
			func(r *Report) int64 { return r.Truncated }),
		count("replay_cut_bytes_total", "Bytes of access logs that were seen, and cut off before they were read: their lines are not counted.",
			func(r *Report) int64 { return r.Cut }),
	}
}
