package incident

import (
	"cmp"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/logquery"
	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/live"
	"github.com/windowstat/windowstat/exporter/verify"
)

// MaxRange is the longest range of a report.
const MaxRange = 6 * time.Hour

// maxCells is how many seconds of resources a report has at most, so that it stays below two megabytes; minShown is how many resources
// it has in any case.
const (
	maxCells = 250_000
	minShown = 10
)

// Report is one file for a browser.
type Report struct {
	Title   string
	Answers *Answers
	Limits  []collector.Limit // drawn in the charts of their resources
	Alerts  []verify.Alert    // nil if no database was asked
}

// table is a part of the report, above the charts.
type table struct {
	Title, Hint, Empty string
	Head               []string
	Rows               [][]string
}

var page = template.Must(template.New("").Parse(`{{range .}}<section class="found"><h2>{{.Title}}</h2><p class="hint">{{.Hint}}</p>
{{if .Rows}}<div class="scroll"><table><thead><tr>{{range .Head}}<th scope="col">{{.}}</th>{{end}}</tr></thead>
<tbody>{{range .Rows}}<tr>{{range .}}<td>{{.}}</td>{{end}}</tr>
{{end}}</tbody></table></div>{{else}}<p>{{.Empty}}</p>{{end}}</section>
{{end}}`))

// Write writes the report of the seconds, those before the range included. It shows the resources that left what they were first, then
// those with most exceptions and refusals, and says how many it leaves out.
func (r *Report) Write(w io.Writer, s *Seconds) error {
	first, last := s.To, s.From
	for _, l := range s.logs { // before the first log begins and behind the end of the last one, nothing is known
		first, last = min(first, l.first), max(last, min(l.last, s.To))
	}
	rec := live.Recording{Title: r.Title, First: first, Seconds: int(last - first + 1)}
	_, offset := time.Unix(s.From, 0).In(s.Zone).Zone()
	rec.Offset = time.Duration(offset) * time.Second
	shown := s.ranked(r.Answers.Onsets)
	if most := max(maxCells/rec.Seconds, minShown); len(shown) > most {
		r.Answers.Notes = append(r.Answers.Notes, fmt.Sprintf("the charts and the table of resources have %d of %d resources", most, len(shown)))
		shown = shown[:most]
	}
	totals := []*resource{}
	for _, l := range s.logs {
		if l.total != nil {
			totals = append(totals, l.total)
		}
	}
	rec.Total = recorded(first, rec.Seconds, totals...)
	for _, x := range shown {
		out := recorded(first, rec.Seconds, x.resource)
		out.Name = s.label(x.log, x.name)
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

// label is the name of a resource, with its log if there are several.
func (s *Seconds) label(l *log, name string) string {
	if len(s.logs) > 1 {
		return l.name + ": " + name
	}
	return name
}

// ranked are the resources of all logs, in the order in which a report shows them.
func (s *Seconds) ranked(onsets []Onset) (all []ranked) {
	rank := map[[2]string]int{}
	for i, o := range onsets {
		rank[[2]string{o.Log, o.Resource}] = i - len(onsets)
	}
	for _, l := range s.logs {
		for _, r := range l.resources {
			x := ranked{log: l, resource: r, rank: rank[[2]string{l.name, r.name}]}
			for i := range r.rows {
				x.trouble += int64(r.rows[i].exception) + int64(r.rows[i].block)
				x.pass += int64(r.rows[i].pass)
			}
			all = append(all, x)
		}
	}
	slices.SortStableFunc(all, func(a, b ranked) int {
		return cmp.Or(a.rank-b.rank, cmp.Compare(b.trouble, a.trouble), cmp.Compare(b.pass, a.pass))
	})
	return all
}

type ranked struct {
	*resource
	log           *log
	rank          int // below 0 for an onset
	trouble, pass int64
}

// recorded is the seconds of resources, added up.
func recorded(first int64, seconds int, all ...*resource) live.Recorded {
	var x live.Recorded
	lists := []*[]int64{&x.Pass, &x.Block, &x.Complete, &x.Exception, &x.RT, &x.InFlightMax}
	for _, list := range lists {
		*list = make([]int64, seconds)
	}
	for _, r := range all {
		for _, v := range r.rows {
			i := v.at - first
			if i < 0 || i >= int64(seconds) {
				continue
			}
			for k, n := range []int32{v.pass, v.block, v.complete, v.exception, 0, v.inFlight} {
				(*lists[k])[i] += int64(n)
			}
			x.RT[i] += int64(v.rtMs) * 1000 * int64(v.complete)
		}
	}
	for i, n := range x.Complete {
		if x.RT[i] /= max(n, 1); n == 0 {
			x.RT[i] = -1
		}
	}
	return x
}

// tables are what stands above the charts.
func (r *Report) tables(s *Seconds) []table {
	a := r.Answers
	onsets := table{
		Title: "Onset", Hint: "Which resources left what they were in the ten minutes before " + s.time(s.From) + ", the first one first. Those with an = may have been before or after another.",
		Empty: "Nothing left what it was.", Head: []string{"Rank", "Second", "Resource", "What left", "Log"},
	}
	for i := range a.Onsets {
		o := &a.Onsets[i]
		onsets.Rows = append(onsets.Rows, []string{o.Place(), o.Time.Format(layout), logquery.Visible(o.Resource), o.What(), logquery.Visible(o.Log)})
	}
	all := []table{onsets, s.refusals()}
	if len(a.Trials) > 0 {
		t := table{Title: "Limits, tried on the log", Hint: "Refusals are " + Least + ".", Head: []string{"Limit", "Resource", "Calls", "Refused then", "Would have been, at least", "In seconds", "Highest", "At", "Log"}}
		for _, x := range a.Trials {
			t.Rows = append(t.Rows, []string{
				logquery.Visible(x.Limit), logquery.Visible(x.Resource), fmt.Sprint(x.Offered), fmt.Sprint(x.Blocked), fmt.Sprint(x.Refused),
				fmt.Sprint(x.Seconds), fmt.Sprint(x.Highest), x.HighestAt.Format(layout), logquery.Visible(x.Log),
			})
		}
		all = append(all, t)
	}
	if r.Alerts != nil {
		t := table{Title: "Alerts", Hint: "That fired, as the database has them.", Empty: "None fired.", Head: []string{"Alert", "Labels", "From", "To"}}
		for _, x := range r.Alerts {
			t.Rows = append(t.Rows, []string{logquery.Visible(x.Name), logquery.Visible(x.Labels), s.time(x.From.Unix()), s.time(x.To.Unix())})
		}
		all = append(all, t)
	}
	if len(a.Notes) > 0 {
		t := table{Title: "Notes"}
		for _, n := range a.Notes {
			t.Rows = append(t.Rows, []string{n})
		}
		all = append(all, t)
	}
	return all
}

// refusals are the resources of which calls were refused in the range.
func (s *Seconds) refusals() table {
	t := table{Title: "Refusals", Empty: "No call was refused.", Head: []string{"Resource", "Refused", "Of calls", "In seconds", "First", "Last", "Most in a second", "Log"}}
	for _, l := range s.logs {
		for _, r := range l.resources {
			var refused, calls, seconds, most, first, last int64
			for _, v := range r.rows {
				if v.at < s.From || v.at > s.To {
					continue
				}
				calls += int64(v.pass) + int64(v.block)
				if v.block > 0 {
					refused, seconds, most, first, last = refused+int64(v.block), seconds+1, max(most, int64(v.block)), cmp.Or(first, v.at), v.at
				}
			}
			if refused > 0 {
				t.Rows = append(t.Rows, []string{
					logquery.Visible(r.name), fmt.Sprint(refused), fmt.Sprint(calls), fmt.Sprint(seconds), s.time(first), s.time(last), fmt.Sprint(most), logquery.Visible(l.name),
				})
			}
		}
	}
	return t
}
