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

// Answers are what is asked of the seconds: nil where it is not asked.
type Answers struct {
	Onsets []Onset  `json:"onsets,omitzero"`
	Trials []Trial  `json:"backtest,omitzero"`
	Notes  []string `json:"notes,omitempty"` // what limits the answers
}

// leastHint is what a backtest cannot know.
const leastHint = "It is at least, because a log has calendar seconds and the window of a limit slides: what it refuses of a burst across two seconds shows in " +
	"neither. A call may be in flight in many seconds, so of concurrency the highest second counts. Prioritized calls would have waited first, and clients " +
	"that try again would have come more often."

// table is answers of one kind, for reading.
type table struct {
	Title, Hint, Empty string
	Head               []string
	Rows               [][]string
}

// add adds a row. Names are shown without what cannot be printed, and times in their zone.
func (t *table) add(cells ...any) {
	var row []string
	for _, c := range cells {
		text := fmt.Sprint(c)
		if at, ok := c.(time.Time); ok {
			if text = at.Format(logquery.TimeLayout); at.IsZero() {
				text = "-"
			}
		}
		row = append(row, logquery.Visible(text))
	}
	t.Rows = append(t.Rows, row)
}

// onsets are a row for each resource, with all that left of it: the first second, and how much later the others came.
func (a *Answers) onsets() table {
	t := table{
		Title: "Onset", Hint: "What left what it was in the ten minutes before, the first one first. = may have been before or after another.",
		Empty: "Nothing left what it was in the ten minutes before.", Head: []string{"Rank", "Second", "Resource", "What left", "Log"},
	}
	for i := range a.Onsets {
		o := &a.Onsets[i]
		rank := strconv.Itoa(o.Rank)
		if o.Tied {
			rank += "="
		}
		var left []string
		for _, c := range o.Changes {
			text := fmt.Sprintf("%s %g to %g", c.Number, c.Before, c.After)
			if later := c.Time.Sub(o.Time); later > 0 {
				text += fmt.Sprintf(" (+%s)", later)
			}
			left = append(left, text)
		}
		t.add(rank, o.Time, o.Resource, strings.Join(left, ", "), o.Log)
	}
	return t
}

// trials are a row for each limit and resource.
func (a *Answers) trials() table {
	t := table{
		Title: "Limits, tried on the log", Hint: leastHint,
		Head: []string{"Limit", "Resource", "Calls", "Refused then", "Would be, at least", "In seconds", "Highest", "At", "Log"},
	}
	for _, x := range a.Trials {
		t.add(x.Limit, x.Resource, x.Offered, x.Blocked, x.Refused, x.Seconds, x.Highest, x.HighestAt, x.Log)
	}
	return t
}

// spans are the seconds of trials; a report leaves them out, as there may be many.
func (a *Answers) spans() table {
	t := table{Title: "Seconds in which they would have refused", Empty: "No calendar second shows a refusal.", Head: []string{"From", "To", "At least", "Highest", "Limit", "Resource", "Log"}}
	for _, x := range a.Trials {
		for _, s := range x.Spans {
			t.add(s.From, s.To, s.Refused, s.Highest, x.Limit, x.Resource, x.Log)
		}
	}
	return t
}

// notes are a row each.
func (a *Answers) notes() table {
	t := table{Title: "Notes"}
	for _, n := range a.Notes {
		t.add(n)
	}
	return t
}

// WriteJSON writes the answers as one object.
func (a *Answers) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(a)
}

// WriteTable writes the answers for reading.
func (a *Answers) WriteTable(w io.Writer) error {
	var all []table
	if a.Onsets != nil {
		all = append(all, a.onsets())
	}
	if a.Trials != nil {
		all = append(all, a.trials(), a.spans())
	}
	if a.Notes != nil {
		all = append(all, a.notes())
	}
	// One writer aligns all tables, each by itself: a line without tabs ends a table for it.
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, t := range all {
		if i > 0 {
			fmt.Fprintln(columns)
		}
		fmt.Fprintln(columns, t.Title)
		for _, row := range append([][]string{t.Head}, t.Rows...) {
			if len(row) > 0 && len(t.Rows) > 0 {
				fmt.Fprintln(columns, strings.Join(row, "\t"))
			}
		}
		if text := t.Hint; len(t.Rows) == 0 {
			fmt.Fprintln(columns, t.Empty)
		} else if text != "" {
			fmt.Fprintln(columns, text)
		}
	}
	return columns.Flush()
}
