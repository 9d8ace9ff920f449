package incident

import (
	"cmp"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/live"
	"github.com/windowstat/windowstat/exporter/verify"
)

// MaxRange is the longest range of a report.
const MaxRange = 6 * time.Hour

// maxCells is how many seconds of resources a report has at most, so that it stays below two megabytes; minShown is how many resources
// it has in any case.
const (
	maxCells  = 250_000
	minShown  = 10
	maxListed = 200 // rows of a table
)

// Report is one file for a browser.
type Report struct {
	Title   string
	Answers *Answers
	Limits  []collector.Limit // drawn in the charts of their resources
	Alerts  []verify.Alert    // nil if no database was asked
}

// page is what stands above the charts: tables, of which short ones are open at first. The template escapes names, which may be a
// stranger's.
var page = template.Must(template.New("").Parse(`{{range .}}<details class="found"{{if lt (len .Rows) 20}} open{{end}}><summary><h2>{{.Title}}<span>: {{len .Rows}}</span></h2></summary>
<p class="hint">{{.Hint}}</p>
{{if .Rows}}<div class="scroll"><table><thead><tr>{{range .Head}}<th scope="col">{{.}}</th>{{end}}</tr></thead>
<tbody>{{range .Rows}}<tr>{{range .}}<td>{{.}}</td>{{end}}</tr>
{{end}}</tbody></table></div>{{else}}<p>{{.Empty}}</p>{{end}}</details>
{{end}}`))

// Write writes the report of the seconds, those before the range included. It shows the resources that left what they were first, then
// those with most exceptions and refusals, and says how many it leaves out.
func (r *Report) Write(w io.Writer, s *Seconds) error {
	first, last := s.To, s.From
	for _, l := range s.logs { // before the first log begins and behind the end of the last one, nothing is known
		first, last = min(first, l.first), max(last, min(l.last, s.To))
	}
	rec := live.Recording{Title: r.Title, First: first, Seconds: int(last - first + 1)}
	_, offset := s.time(s.From).Zone()
	rec.Offset = time.Duration(offset) * time.Second
	// A report is mailed and attached, so its size is bounded: what nobody would look at first is left out, and that is said.
	shown := s.ranked(r.Answers.Onsets)
	if most := max(maxCells/rec.Seconds, minShown); len(shown) > most {
		r.Answers.Notes = append(r.Answers.Notes, fmt.Sprintf("the charts and the table of resources have %d of %d resources", most, len(shown)))
		shown = shown[:most]
	}
	totals := []*resource{}
	for _, l := range s.logs {
		if total := l.byName[collector.InboundTotal]; total != nil {
			totals = append(totals, total)
		}
	}
	rec.Total = recorded(first, rec.Seconds, totals...)
	for _, x := range shown {
		out := recorded(first, rec.Seconds, x)
		if out.Name = x.name; len(s.logs) > 1 {
			out.Name = x.log.name + ": " + x.name
		}
		for _, l := range r.Limits {
			if l.Matches(x.name) {
				out.Limits = append(out.Limits, l)
			}
		}
		rec.Resources = append(rec.Resources, out)
	}
	var above strings.Builder
	if err := page.Execute(&above, r.tables(s)); err != nil {
		return err
	}
	rec.Above = template.HTML(above.String()) // the template has escaped it
	return rec.WriteHTML(w)
}

// ranked are the resources of all logs, in the order in which a report shows them.
func (s *Seconds) ranked(onsets []Onset) []*resource {
	rank := map[*resource]int{} // below 0 for an onset
	for i, o := range onsets {
		rank[o.of] = i - len(onsets)
	}
	all := s.resources()
	slices.SortStableFunc(all, func(a, b *resource) int {
		return cmp.Or(rank[a]-rank[b], cmp.Compare(b.harmed, a.harmed), cmp.Compare(b.passed, a.passed))
	})
	return all
}

// recorded is the seconds of resources, added up.
func recorded(first int64, seconds int, all ...*resource) live.Recorded {
	var lists [columns][]int64
	for i := range lists {
		lists[i] = make([]int64, seconds)
	}
	for _, r := range all {
		for _, x := range r.rows {
			if i := x.at - first; i >= 0 && i < int64(seconds) {
				for k, n := range x.v {
					v := int64(n)
					if k == rtMs {
						v *= 1000 * int64(x.v[complete]) // microseconds of all calls
					}
					// Averages do not add up; each counts with its calls here, and is divided by all of them below.
					lists[k][i] += v
				}
			}
		}
	}
	for i, n := range lists[complete] {
		if lists[rtMs][i] /= max(n, 1); n == 0 {
			lists[rtMs][i] = -1
		}
	}
	return live.Recorded{
		Pass: lists[pass], Block: lists[block], Complete: lists[complete], Exception: lists[exception], RT: lists[rtMs], InFlightMax: lists[inFlight],
	}
}

// tables are what stands above the charts, each with its first rows.
func (r *Report) tables(s *Seconds) []table {
	all := []table{r.Answers.onsets(), s.refusals()}
	if len(r.Answers.Trials) > 0 {
		all = append(all, r.Answers.trials())
	}
	if r.Alerts != nil {
		t := table{Title: "Alerts", Hint: fmt.Sprintf("That fired, as the database has them: to within %s, and one that fired for less may be missing.", verify.AlertStep), Empty: "None fired.", Head: []string{"Alert", "Labels", "From", "To"}}
		for _, x := range r.Alerts {
			t.add(x.Name, x.Labels, x.From.In(s.Zone), x.To.In(s.Zone))
		}
		all = append(all, t)
	}
	if len(r.Answers.Notes) > 0 {
		all = append(all, r.Answers.notes())
	}
	for i := range all {
		if t := &all[i]; len(t.Rows) > maxListed {
			t.Hint += fmt.Sprintf(" These are the first %d of %d.", maxListed, len(t.Rows))
			t.Rows = t.Rows[:maxListed]
		}
	}
	return all
}

// refusals are the resources of which calls were refused in the range, the most first.
func (s *Seconds) refusals() table {
	t := table{Title: "Refusals", Empty: "No call was refused.", Head: []string{"Resource", "Refused", "Of calls", "In seconds", "First", "Last", "Most in a second", "Log"}}
	var all []Trial
	for _, r := range s.resources() {
		all = append(all, s.over(r, (*row).refused, 0, sum))
	}
	slices.SortStableFunc(all, func(a, b Trial) int { return cmp.Compare(b.Refused, a.Refused) })
	for _, x := range all {
		if n := len(x.Spans); n > 0 {
			t.add(x.Resource, x.Refused, x.Offered, x.Seconds, x.Spans[0].From, x.Spans[n-1].To, x.Highest, x.Log)
		}
	}
	return t
}
