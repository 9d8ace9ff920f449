package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/logquery"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/push"
	"github.com/windowstat/windowstat/exporter/verify"
	"github.com/windowstat/windowstat/internal/redact"
)

// finding is a line of the report: a range in which the same is wrong with the same metrics of some resources.
type finding struct {
	from, to      time.Time
	seconds       int64
	what, metrics string
}

// print prints a report for reading; it is complete unless there was an error.
func (v *verification) print(w io.Writer, r verify.Report, err error) {
	show := v.Time
	if !r.From.After(r.To) {
		fmt.Fprintf(w, "%s to %s: %d samples of %d seconds compared\n", show(r.From), show(r.To), r.Samples, r.Seconds)
	}
	lines := v.lines(r)
	if len(lines) > 0 {
		fmt.Fprintln(w)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "WHAT\tFROM\tTO\tSECONDS\tMETRICS\tRESOURCES")
		for _, f := range slices.SortedFunc(maps.Keys(lines), func(a, b finding) int {
			return cmp.Or(a.from.Compare(b.from), a.to.Compare(b.to), cmp.Compare(a.what, b.what), cmp.Compare(a.metrics, b.metrics))
		}) {
			fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\n", f.what, show(f.from), show(f.to), f.seconds, f.metrics, logquery.List(lines[f]))
		}
		_ = t.Flush()
		fmt.Fprintln(w)
	}
	for _, f := range r.Findings {
		for _, x := range f.Values {
			fmt.Fprintf(w, "different at %s: %s of %s is %v in the log, %v in the database\n", show(x.At), logquery.Visible(f.Metric), logquery.Visible(resourceOf(f)), x.Log, x.Database)
		}
		if more := f.Different - int64(len(f.Values)); more > 0 {
			fmt.Fprintf(w, "  and in %d more seconds\n", more)
		}
	}
	switch {
	case r.Clean() && err != nil:
		fmt.Fprintln(w, "the comparison did not come to its end")
	case r.Clean() && !r.From.After(r.To):
		fmt.Fprintln(w, "nothing is missing, different or too much")
	default:
		fmt.Fprintf(w, "seconds missing: %d, different: %d, too much: %d\n", r.Missing, r.Different, r.Extra)
	}
	for _, x := range r.Elsewhere {
		fmt.Fprintf(w, "under other labels: %s to %s, %d seconds: %s\n", show(x.From), show(x.To), x.Seconds, x.Reason)
	}
	for _, x := range r.NotHealed {
		fmt.Fprintf(w, "not written under these labels: %s to %s, %d seconds: %s\n", show(x.From), show(x.To), x.Seconds, x.Reason)
	}
	for _, note := range r.Notes {
		fmt.Fprintln(w, "note:", note)
	}
	for _, warning := range r.Warnings {
		fmt.Fprintln(w, "nothing is certain, the server warns:", warning)
	}
}

// lines are the lines of the report, with the resources of each.
func (v *verification) lines(r verify.Report) map[finding][]string {
	type series struct {
		finding
		resource string
	}
	metrics := map[series][]string{}
	add := func(what string, ranges []verify.Range, f verify.Finding) {
		for _, x := range ranges {
			k := series{finding{x.From, x.To, x.Seconds, what, ""}, resourceOf(f)}
			metrics[k] = append(metrics[k], logquery.Visible(strings.TrimPrefix(f.Metric, v.gap.Namespace+"_persecond_")))
		}
	}
	for _, f := range r.Findings {
		add("missing", f.Missing, f)
		add("too much", f.Extra, f)
	}
	logged := 0 // metrics of a resource
	for _, m := range exporter.Catalogue() {
		if m.Logged && len(m.Labels) > 0 {
			logged++
		}
	}
	lines := map[finding][]string{}
	for _, k := range slices.SortedFunc(maps.Keys(metrics), func(a, b series) int { return cmp.Compare(a.resource, b.resource) }) {
		names := metrics[k]
		if k.metrics = strings.Join(names, ","); len(names) == logged {
			k.metrics = "all"
		}
		lines[k.finding] = append(lines[k.finding], k.resource)
	}
	return lines
}

func resourceOf(f verify.Finding) string {
	if f.Resource == "" {
		return "(all inbound traffic)"
	}
	return f.Resource
}

// blocksAfter is how old seconds must be for blocks: Prometheus drops from its memory what is older than the newest block.
const blocksAfter = 3 * time.Hour

// advise says how to fill what is missing.
func (v *verification) advise(w io.Writer, r verify.Report, result push.WriteResult) {
	fmt.Fprintln(w)
	switch {
	case !v.heal:
		fmt.Fprintln(w, "--heal writes what is missing, if the server accepts samples out of order.")
	case result.Refused > 0:
		fmt.Fprintln(w, "The server refuses samples: Prometheus needs an out_of_order_time_window that reaches back to them.")
	case result.Written > 0:
		fmt.Fprintln(w, "The server accepted samples and does not show them. Prometheus hides what is written to a deleted range for some hours.")
	}
	oldest, newest := time.Time{}, time.Time{}
	for _, f := range r.Findings {
		for _, x := range f.Missing {
			if time.Since(x.To) < blocksAfter {
				continue
			}
			if oldest.IsZero() || x.From.Before(oldest) {
				oldest = x.From
			}
			if x.To.After(newest) {
				newest = x.To
			}
		}
	}
	if oldest.IsZero() {
		fmt.Fprintln(w, "Once they are three hours old, blocks can be made of them for Prometheus: this command will tell how.")
		return
	}
	command := []string{"windowstat verify --dir", shellWord(v.Searcher.Dir)}
	option := func(name, value string) { command = append(command, name, shellWord(value)) }
	if v.Searcher.App != "" {
		option("--app", v.Searcher.App)
	}
	for _, pid := range v.PIDs {
		option("--pid", fmt.Sprint(pid))
	}
	for _, resource := range v.Resources {
		option("--resource", resource)
	}
	option("--url", redact.URL(v.from.URL))
	for _, name := range slices.Sorted(maps.Keys(r.Labels)) {
		option("--label", name+"="+logquery.Visible(r.Labels[name]))
	}
	option("--namespace", v.gap.Namespace)
	file := fmt.Sprintf("gap-%d.om", oldest.Unix())
	fmt.Fprintln(w, "For Prometheus, blocks can be made of what is older than three hours; DATA is its data directory:")
	fmt.Fprintf(w, "  %s --from %d --to %d --heal --openmetrics %s\n", strings.Join(command, " "), oldest.Unix(), newest.Unix(), file)
	fmt.Fprintf(w, "  promtool tsdb create-blocks-from openmetrics %s DATA\n", file)
}

// shellWord is a word for a shell.
func shellWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=-") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
