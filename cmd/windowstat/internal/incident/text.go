package incident

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/logquery"
)

// Answers are what is asked of the seconds.
type Answers struct {
	Onsets []Onset  `json:"onsets,omitzero"`
	Trials []Trial  `json:"backtest,omitzero"`
	Notes  []string `json:"notes,omitempty"` // what limits the answers
}

// Least is what a backtest cannot know, for those who read one.
const Least = "at least, because a log has calendar seconds and the window of a limit slides: what it refuses of a burst across two seconds shows in neither; " +
	"a call may be in flight in many seconds, so of concurrency the highest second counts; prioritized calls would have waited first, and clients that try again would have come more often"

// Notes are what limits the answers: logs that end before the range does, and for onsets those that hardly say what is usual.
func (s *Seconds) Notes(onsets bool) (notes []string) {
	for _, l := range s.logs {
		if n := max(0, s.From-max(l.first, s.From-Before)); onsets && n < 60 {
			notes = append(notes, fmt.Sprintf("the log %s has only %d seconds before %s to say what is usual", logquery.Visible(l.name), n, s.time(s.From)))
		}
		if l.last < s.To-steady {
			notes = append(notes, fmt.Sprintf("the log %s ends at %s", logquery.Visible(l.name), s.time(l.last)))
		}
	}
	return notes
}

// WriteJSON writes the answers as one object.
func (a *Answers) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(a)
}

// WriteTable writes the answers for reading: onsets unless nil, and trials.
func (a *Answers) WriteTable(w io.Writer) error {
	var b strings.Builder
	if a.Onsets != nil {
		a.onsets(&b)
	}
	for i := range a.Trials {
		a.Trials[i].write(&b)
	}
	if len(a.Trials) > 0 {
		fmt.Fprintf(&b, "\n%s.\n", Least)
	}
	for _, n := range a.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (a *Answers) onsets(b *strings.Builder) {
	if len(a.Onsets) == 0 {
		fmt.Fprintln(b, "nothing left what it was in the ten minutes before")
		return
	}
	columns := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(columns, "rank\ttime\tlog\tresource\twhat left")
	for i := range a.Onsets {
		o := &a.Onsets[i]
		fmt.Fprintf(columns, "%s\t%s\t%s\t%s\t%s\n", o.Place(), o.Time.Format(layout), logquery.Visible(o.Log), logquery.Visible(o.Resource), o.What())
	}
	_ = columns.Flush() // of a strings.Builder
}

// Place returns the rank, with = behind it if another resource may have been before or after.
func (o *Onset) Place() string {
	if o.Tied {
		return strconv.Itoa(o.Rank) + "="
	}
	return strconv.Itoa(o.Rank)
}

// What returns the numbers that left, with their medians before and after, and how much later than the first one.
func (o *Onset) What() string {
	var all []string
	for _, c := range o.Changes {
		text := fmt.Sprintf("%s %g to %g", c.Number, c.Before, c.After)
		if later := c.Time.Sub(o.Time); later > 0 {
			text += fmt.Sprintf(" (+%s)", later)
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// write writes what a limit would have done to a resource, and each stretch of seconds.
func (t *Trial) write(b *strings.Builder) {
	fmt.Fprintf(b, "%s: %s of %s: ", logquery.Visible(t.Limit), logquery.Visible(t.Resource), logquery.Visible(t.Log))
	if t.Seconds == 0 {
		fmt.Fprintf(b, "no calendar second shows a refusal; ")
	} else {
		fmt.Fprintf(b, "at least %d of %d calls refused, in %d seconds; ", t.Refused, t.Offered, t.Seconds)
	}
	fmt.Fprintf(b, "%d were refused then", t.Blocked)
	if t.Highest > 0 {
		fmt.Fprintf(b, "; the highest second is %s with %d", t.HighestAt.Format(layout), t.Highest)
	}
	b.WriteByte('\n')
	for _, x := range t.Spans {
		fmt.Fprintf(b, "  %s to %s  at least %d, highest %d\n", x.From.Format(layout), x.To.Format(time.TimeOnly), x.Refused, x.Highest)
	}
}
