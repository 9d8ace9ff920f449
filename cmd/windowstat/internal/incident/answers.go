package incident

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/logquery"
)

// Answers has the findings of a range, in the form in which they are printed. Onsets and Trials are nil if the command
// did not search for them.
//
// The same Answers are printed as text, as JSON and as HTML, so all three have the same numbers. The text and the HTML
// are made of tables; JSON has the fields.
type Answers struct {
	// An empty list that is not nil means that the search found nothing, and is printed.
	Onsets []Onset  `json:"onsets,omitzero"`
	Trials []Trial  `json:"backtest,omitzero"`
	Notes  []string `json:"notes,omitempty"` // why the findings may be incomplete
}

// boundHint explains below a backtest why its numbers are lower bounds.
const boundHint = "These are lower bounds: the log has calendar seconds, and the window of a limit slides. " +
	"Calls that the limit refuses in a burst across two seconds appear in neither second. A call may be in flight " +
	"in many seconds, so for concurrency only the highest second counts. Prioritized calls would have waited first. " +
	"Clients that retry would have called more often."

// table has the findings of one kind as text, for the terminal and for the report. Hint explains the rows. Empty is
// shown instead of the rows if there are none.
type table struct {
	Title, Hint, Empty string
	Head               []string
	Rows               [][]string
}

// add adds a row. It escapes unprintable characters in texts, and shows a zero time as a dash.
func (t *table) add(cells ...any) {
	var row []string
	for _, c := range cells {
		text := fmt.Sprint(c)
		if at, ok := c.(time.Time); ok {
			// A resource without a busiest second has the zero time.
			if text = at.Format(logquery.TimeLayout); at.IsZero() {
				text = "-"
			}
		}
		row = append(row, logquery.Visible(text))
	}
	t.Rows = append(t.Rows, row)
}

// onsets returns a table with a row for each resource that changed. A row has the time of the first change. Later
// changes of the resource have their delay after it.
func (a *Answers) onsets() table {
	t := table{
		Title: "Onsets",
		Hint: "Resources that changed in comparison with the ten minutes before, the earliest first. " +
			"The order of ranks with = is unknown.",
		Empty: "No resource changed in comparison with the ten minutes before.",
		Head:  []string{"Rank", "Second", "Resource", "Changes", "Log"},
	}
	for i := range a.Onsets {
		o := &a.Onsets[i]
		rank := strconv.Itoa(o.Rank)
		if o.Tied {
			rank += "="
		}
		var changes []string
		for _, c := range o.Changes {
			text := fmt.Sprintf("%s %g to %g", c.Number, c.Before, c.After)
			if later := c.Time.Sub(o.Time); later > 0 {
				text += fmt.Sprintf(" (+%s)", later)
			}
			changes = append(changes, text)
		}
		t.add(rank, o.Time, o.Resource, strings.Join(changes, ", "), o.Log)
	}
	return t
}

// trials returns a table with a row for each limit and each resource that the limit matches.
func (a *Answers) trials() table {
	t := table{
		Title: "Backtest of limits", Hint: boundHint,
		Head: []string{
			"Limit", "Resource", "Calls", "Blocked", "Refused (at least)", "Seconds", "Highest", "At", "Log",
		},
	}
	for _, x := range a.Trials {
		t.add(x.Limit, x.Resource, x.Offered, x.Blocked, x.Refused, x.Seconds, x.Highest, x.HighestAt, x.Log)
	}
	return t
}

// spans returns a table of the seconds in which calls would have been refused. A report omits the table, because it may
// be long.
func (a *Answers) spans() table {
	t := table{
		Title: "Seconds with refused calls", Empty: "No calendar second exceeds a limit.",
		Head: []string{"From", "To", "Refused (at least)", "Highest", "Limit", "Resource", "Log"},
	}
	for _, x := range a.Trials {
		for _, s := range x.Spans {
			t.add(s.From, s.To, s.Refused, s.Highest, x.Limit, x.Resource, x.Log)
		}
	}
	return t
}

// notes returns a table with a row for each note.
func (a *Answers) notes() table {
	t := table{Title: "Notes"}
	for _, n := range a.Notes {
		t.add(n)
	}
	return t
}

// WriteJSON writes the answers as one object.
func (a *Answers) WriteJSON(w io.Writer) error {
	return logquery.WriteJSON(w, a)
}

// WriteTable writes the answers as aligned tables.
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
	// A tabwriter aligns the columns of adjacent lines. A line without tabs ends a table, so one writer aligns each
	// table separately.
	columns := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for i, t := range all {
		if i > 0 {
			fmt.Fprintln(columns)
		}
		fmt.Fprintln(columns, t.Title)
		for _, row := range append([][]string{t.Head}, t.Rows...) {
			// A table without rows has no header, only the text of Empty. Notes have no header at all.
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
