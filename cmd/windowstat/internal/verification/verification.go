// Package verification is what the command verify does: it compares databases with metric logs, heals them, and says what it found.
//
// Package verify in exporter has the comparison; this one has the report for people. What is wrong comes as a finding for each metric of
// each resource, and mostly a gap lacks all of them, so findings of equal ranges become one line. After the lines it says how the gap can
// be filled, which depends on the age of its seconds, as servers refuse what is too old.
package verification

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/logquery"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/push"
	"github.com/windowstat/windowstat/exporter/verify"
)

// Verification is what is compared, and with what. Its options must have been checked.
type Verification struct {
	// Logs are compared one after the other. Several have a line each.
	Logs      []*logquery.Selection
	Namespace string
	// From is the database that is read, and To what is written to by Heal and New.
	From verify.Options
	To   verify.Target
	// Heal writes what is missing. New writes all that the only log has, and compares nothing.
	Heal, New bool
	// File gets OpenMetrics text in the place of a server, unless it is empty.
	File string
	// JSON reports as JSON.
	JSON bool
}

// Run compares each log, and heals if that is wanted. The error says what is wrong with a database, or why that is not known.
func (v *Verification) Run(ctx context.Context, stdout io.Writer) (err error) {
	// The file is made before anything is compared, which may take minutes: whether it can be written shows at once.
	if v.File != "" {
		file, err := os.Create(v.File)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		v.To.OpenMetrics = file
	}
	var errs []error
	for _, log := range v.Logs {
		err := v.one(ctx, log, stdout)
		if err != nil && len(v.Logs) > 1 {
			err = fmt.Errorf("%s: %w", logquery.Visible(log.Searcher.Dir), err)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// one compares a log.
func (v *Verification) one(ctx context.Context, log *logquery.Selection, stdout io.Writer) (err error) {
	gap := verify.Gap{Searcher: log.Searcher, PIDs: log.PIDs, From: log.From, To: log.To, Match: log.Match, Namespace: v.Namespace}
	r := reporter{v, log, stdout}
	var h verify.Healing
	switch {
	case v.New:
		h.WriteResult, err = verify.Write(ctx, gap, v.To)
		fmt.Fprintln(stdout, healed(h.WriteResult))
		if err == nil && h.Written == 0 || h.Refused+h.Unconfirmed+h.Left > 0 {
			err = errors.Join(err, errors.New("not all was written, or there was nothing"))
		}
		return err
	case !v.Heal:
		h.After, err = verify.Check(ctx, gap, v.From)
	default:
		h, err = verify.Heal(ctx, gap, v.From, v.To)
		if !v.JSON && len(v.Logs) == 1 && h.WriteResult != (push.WriteResult{}) {
			r.print(h.Before, nil)
			fmt.Fprintf(stdout, "\nhealed: %s\n\n", healed(h.WriteResult))
		}
	}
	return r.end(h, err)
}

// reporter says what was found with a log.
type reporter struct {
	*Verification
	log *logquery.Selection
	w   io.Writer
}

// finding is a line of the report: a range in which the same is wrong with the same metrics of some resources.
type finding struct {
	from, to      time.Time
	seconds       int64
	what, metrics string
}

// end prints the last report, and returns what decides the exit status.
func (r reporter) end(h verify.Healing, err error) error {
	report := h.After
	switch {
	case r.JSON:
		out := struct {
			Dir string `json:"dir"`
			verify.Report
			Healed *push.WriteResult `json:"healed,omitempty"`
		}{Dir: r.log.Searcher.Dir, Report: report}
		if r.Heal {
			out.Healed = &h.WriteResult
		}
		e := json.NewEncoder(r.w)
		e.SetIndent("", "  ")
		err = errors.Join(err, e.Encode(out))
	case len(r.Logs) > 1:
		fmt.Fprintf(r.w, "%s: %d seconds compared; missing: %d, different: %d, too much: %d, not healed: %d, under other labels: %d; healed: %d samples\n",
			logquery.Visible(r.log.Searcher.Dir), report.Seconds, report.Missing, report.Different, report.Extra, total(report.NotHealed), total(report.Elsewhere), h.Written)
	default:
		r.print(report, err)
		if inFile := r.File != "" && err == nil; report.Missing > 0 && !inFile {
			r.advise(report, h.WriteResult)
		}
	}
	switch {
	case err != nil:
		return err
	case report.From.After(report.To):
		return errors.New("no second was compared")
	case r.File != "" && report.Different+report.Extra+total(report.NotHealed) == 0:
		return nil // it is in the file
	case !report.Clean() || len(report.NotHealed) > 0:
		return errors.New("the database is not what the log is")
	}
	return nil
}

// total adds up the seconds of ranges.
func total(list []verify.NotHealed) (n int64) {
	for _, x := range list {
		n += x.Seconds
	}
	return n
}

// healed says what came of writing samples.
func healed(r push.WriteResult) string {
	return fmt.Sprintf("%d samples were written, %d refused, %d unconfirmed, %d not sent", r.Written, r.Refused, r.Unconfirmed, r.Left)
}

// say prints a line.
func (r reporter) say(format string, args ...any) { fmt.Fprintf(r.w, format+"\n", args...) }

// print prints a report for reading; it is complete unless there was an error.
func (r reporter) print(report verify.Report, err error) {
	say, show := r.say, r.log.Time
	compared := !report.From.After(report.To)
	if compared {
		say("%s to %s: %d samples of %d seconds compared", show(report.From), show(report.To), report.Samples, report.Seconds)
	}
	if lines := r.lines(report); len(lines) > 0 {
		say("")
		t := tabwriter.NewWriter(r.w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "WHAT\tFROM\tTO\tSECONDS\tMETRICS\tRESOURCES")
		for _, f := range slices.SortedFunc(maps.Keys(lines), func(a, b finding) int {
			return cmp.Or(a.from.Compare(b.from), a.to.Compare(b.to), cmp.Compare(a.what, b.what), cmp.Compare(a.metrics, b.metrics))
		}) {
			fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\n", f.what, show(f.from), show(f.to), f.seconds, f.metrics, logquery.List(lines[f]))
		}
		_ = t.Flush()
		say("")
	}
	for _, f := range report.Findings {
		for _, x := range f.Values {
			say("different at %s: %s of %s is %v in the log, %v in the database", show(x.At), logquery.Visible(f.Metric), logquery.Visible(resourceOf(f)), x.Log, x.Database)
		}
		if more := f.Different - int64(len(f.Values)); more > 0 {
			say("  and in %d more seconds", more)
		}
	}
	switch {
	case report.Clean() && err != nil:
		say("the comparison did not come to its end")
	case report.Clean() && compared:
		say("nothing is missing, different or too much")
	default:
		say("seconds missing: %d, different: %d, too much: %d", report.Missing, report.Different, report.Extra)
	}
	for _, x := range report.Elsewhere {
		say("under other labels: %s to %s, %d seconds: %s", show(x.From), show(x.To), x.Seconds, x.Reason)
	}
	for _, x := range report.NotHealed {
		say("not written under these labels: %s to %s, %d seconds: %s", show(x.From), show(x.To), x.Seconds, x.Reason)
	}
	for _, note := range report.Notes {
		say("note: %s", note)
	}
	for _, warning := range report.Warnings {
		say("nothing is certain, the server warns: %s", warning)
	}
}

// lines are the lines of the report, with the resources of each. A gap mostly lacks all metrics of many resources: first the metrics of a
// resource with the same range become one line, then the resources of which the same is wrong.
func (r reporter) lines(report verify.Report) map[finding][]string {
	type series struct {
		finding
		resource string
	}
	metrics := map[series][]string{}
	for _, f := range report.Findings {
		for what, ranges := range map[string][]verify.Range{"missing": f.Missing, "too much": f.Extra} {
			for _, x := range ranges {
				k := series{finding{x.From, x.To, x.Seconds, what, ""}, resourceOf(f)}
				metrics[k] = append(metrics[k], logquery.Visible(strings.TrimPrefix(f.Metric, r.Namespace+"_persecond_")))
			}
		}
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

// resourceOf is the resource of a finding, for reading: that of all inbound traffic has no name.
func resourceOf(f verify.Finding) string {
	if f.Resource == "" {
		return "(all inbound traffic)"
	}
	return f.Resource
}

// blocksAfter is how old seconds must be for blocks: Prometheus drops from its memory what is older than the newest block.
const blocksAfter = 3 * time.Hour

// advise says how to fill what is missing.
func (r reporter) advise(report verify.Report, result push.WriteResult) {
	r.say("")
	switch {
	case !r.Heal:
		r.say("--heal writes what is missing, if the server accepts samples out of order.")
	case result.Refused > 0:
		r.say("The server refuses samples: Prometheus needs an out_of_order_time_window that reaches back to them.")
	case result.Written > 0:
		r.say("The server accepted samples and does not show them. Prometheus hides what is written to a deleted range for some hours.")
	}
	var old []verify.Range
	for _, f := range report.Findings {
		old = append(old, slices.DeleteFunc(slices.Clone(f.Missing), func(x verify.Range) bool { return time.Since(x.To) < blocksAfter })...)
	}
	if len(old) == 0 {
		r.say("Once they are three hours old, blocks can be made of them for Prometheus: this command will tell how.")
		return
	}
	from := slices.MinFunc(old, func(a, b verify.Range) int { return a.From.Compare(b.From) }).From.Unix()
	to := slices.MaxFunc(old, func(a, b verify.Range) int { return a.To.Compare(b.To) }).To.Unix()
	r.say("For Prometheus, blocks can be made of what is older than three hours: run this command with the options")
	r.say("  --from %d --to %d --heal --openmetrics gap-%d.om", from, to, from)
	r.say("in the place of its own, and then, DATA being the data directory of Prometheus,")
	r.say("  promtool tsdb create-blocks-from openmetrics gap-%d.om DATA", from)
}
