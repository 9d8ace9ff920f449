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

// MaxRange is the longest range of a report. It limits the seconds in the charts.
const MaxRange = 6 * time.Hour

// Limits for the size of a report, because reports are sent by mail. With maxCells, a report is smaller than two
// megabytes.
const (
	maxCells  = 250_000 // maximum number of resources times seconds
	minShown  = 10      // minimum number of resources, if the logs have so many
	maxListed = 200     // maximum number of rows of a table
)

// Report is an HTML page about an incident, in one file: tables of the findings, and below them the live page with the
// recorded seconds.
type Report struct {
	Title   string
	Answers *Answers
	Limits  []collector.Limit // drawn in the charts of their resources
	Alerts  []verify.Alert    // alerts of a database; nil if none was queried
}

// page is the template of the tables. Tables with fewer than 20 rows are open when the page loads. The template escapes
// names, which may be from untrusted clients.
var page = template.Must(template.New("").Parse(
	`{{range .}}<details class="found"{{if lt (len .Rows) 20}} open{{end}}><summary><h2>{{.Title}}` +
		`<span>: {{len .Rows}}</span></h2></summary>
<p class="hint">{{.Hint}}</p>
{{if .Rows}}<div class="scroll"><table><thead><tr>{{range .Head}}<th scope="col">{{.}}</th>{{end}}</tr></thead>
<tbody>{{range .Rows}}<tr>{{range .}}<td>{{.}}</td>{{end}}</tr>
{{end}}</tbody></table></div>{{else}}<p>{{.Empty}}</p>{{end}}</details>
{{end}}`))

// Write writes a report of s, including the seconds before the range. It shows the resources that changed first, then
// the resources with the most blocked calls and exceptions. If it omits resources, it adds a note to Answers.
func (r *Report) Write(w io.Writer, s *Seconds) error {
	first, last := s.To, s.From
	for _, l := range s.logs { // the charts begin with the first log and end with the last one
		first, last = min(first, l.first), max(last, min(l.last, s.To))
	}
	// The page has the same charts as the live page. It gets its seconds from the file instead of a feed.
	rec := live.Recording{Title: r.Title, First: first, Seconds: int(last - first + 1)}
	// The browser may be in a different zone. It shows times in the zone of the selection, with this fixed offset.
	_, offset := s.time(s.From).Zone()
	rec.Offset = time.Duration(offset) * time.Second
	// Reports are sent by mail, so their size is bounded.
	shown := s.ranked(r.Answers.Onsets)
	// A long range leaves fewer resources for the same size. minShown keeps a report useful even then.
	if n := max(maxCells/rec.Seconds, minShown); len(shown) > n {
		r.Answers.Notes = append(r.Answers.Notes,
			fmt.Sprintf("the charts and the table of resources have %d of %d resources", n, len(shown)))
		shown = shown[:n]
	}
	// The total of the page is the sum of the totals of all logs, each with the inbound calls of one process.
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
		out.Troubles = x.troubles(first, rec.Seconds)
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
	// The report is the only user of Above: the tables precede the charts of the live page.
	rec.Above = template.HTML(above.String()) // the template has escaped it
	return rec.WriteHTML(w)
}

// ranked returns the resources of all logs in the order of the charts: first those with an onset, by rank, then those
// with the most failed calls, then those with the most passed calls.
func (s *Seconds) ranked(onsets []Onset) []*resource {
	// Onsets are in the order of their times, so the index of an onset is also its position in the charts.
	rank := map[*resource]int{} // negative for an onset, which sorts before the 0 of all others
	for i, o := range onsets {
		rank[o.resource] = i - len(onsets)
	}
	all := s.resources()
	slices.SortStableFunc(all, func(a, b *resource) int {
		return cmp.Or(rank[a]-rank[b], cmp.Compare(b.failed, a.failed), cmp.Compare(b.passed, a.passed))
	})
	return all
}

// recorded returns the sums over resources for each second, for the charts. A second without completed calls has no
// response time. Its value is -1, and the chart has a gap there.
func recorded(first int64, seconds int, all ...*resource) live.Recorded {
	var lists [columns][]int64
	for i := range lists {
		lists[i] = make([]int64, seconds)
	}
	for _, r := range all {
		for _, x := range r.rows {
			// Rows outside of the charts are ignored: the seconds after the range are read for onsets only.
			if i := x.at - first; i >= 0 && i < int64(seconds) {
				for k, n := range x.v {
					v := int64(n)
					if k == rtMs {
						v *= 1000 * int64(x.v[complete]) // microseconds of all calls
					}
					// Averages do not add up. Add the response times of all calls, and divide by the number of calls
					// below.
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
		Pass: lists[pass], Block: lists[block], Complete: lists[complete], Exception: lists[exception],
		RT: lists[rtMs], InFlightMax: lists[inFlight],
	}
}

// tables returns the tables above the charts. Each has at most maxListed rows, and its hint states the number of all
// rows.
func (r *Report) tables(s *Seconds) []table {
	all := []table{r.Answers.onsets(), s.blocks()}
	if len(r.Answers.Trials) > 0 {
		all = append(all, r.Answers.trials())
	}
	if r.Alerts != nil {
		t := table{
			Title: "Alerts", Empty: "No alert fired.", Head: []string{"Alert", "Labels", "From", "To"},
			Hint: "Alerts that fired, from the database. Times are accurate to " + verify.AlertStep.String() +
				". A shorter alert may be absent.",
		}
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
			t.Hint += fmt.Sprintf(" The table has the first %d of %d rows.", maxListed, len(t.Rows))
			t.Rows = t.Rows[:maxListed]
		}
	}
	return all
}

// blocks returns a table of the resources with blocked calls in the range, in descending order of these calls.
func (s *Seconds) blocks() table {
	t := table{
		Title: "Blocked calls", Empty: "No call was blocked.",
		Head: []string{"Resource", "Blocked", "Calls", "Seconds", "First", "Last", "Highest second", "Log"},
	}
	var all []Trial
	for _, r := range s.resources() {
		all = append(all, s.excess(r, (*row).blocked, 0, sum))
	}
	slices.SortStableFunc(all, func(a, b Trial) int { return cmp.Compare(b.Refused, a.Refused) })
	for _, x := range all {
		if n := len(x.Spans); n > 0 {
			t.add(x.Resource, x.Refused, x.Offered, x.Seconds, x.Spans[0].From, x.Spans[n-1].To, x.Highest, x.Log)
		}
	}
	return t
}
