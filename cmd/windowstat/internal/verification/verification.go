// Package verification implements the command verify: it compares databases with metric logs, heals them, and prints a
// report.
//
// Package exporter/verify makes the comparison. It has a finding for each metric of each resource. A gap usually lacks
// all metrics of many resources, so the report combines findings with equal ranges in one line. After the lines, the
// report explains how to fill the gap. This depends on the age of the seconds, because servers refuse old samples.
//
// The terms of a report are:
//
//	missing    the log has the second, the database has no sample
//	extra      the database has a sample, the log has no row for it
//	different  both have the second with different values
//	elsewhere  the samples are, or belong, under other labels of the database
//
// A run is the process that counted a second. Each sample has its run as the value of a separate metric, so the
// comparison can distinguish two processes with the same labels.
package verification

import (
	"cmp"
	"context"
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

// Verification has the options of a comparison. The caller must check them.
type Verification struct {
	// Logs are compared one after another. With several logs, the report has one line for each.
	Logs []*logquery.Selection
	// Namespace is the prefix of the names of the metrics in the database.
	Namespace string
	// StateDir is the state directory of windowstat sentinel, if the logs are Sentinel's. Rows of these logs have no
	// run. The state directory has the runs.
	StateDir string
	// From is the database that is read. Heal and New write to To.
	From verify.Options
	To   verify.Target
	// Heal writes missing samples. New writes all samples of the only log, and compares nothing.
	Heal, New bool
	// File, if not empty, receives the samples as OpenMetrics text, instead of a server.
	File string
	// JSON selects JSON for the report.
	JSON bool
}

// Run compares each log, and writes samples with Heal or New. It returns an error if a database differs from its log,
// or if the comparison failed.
func (v *Verification) Run(ctx context.Context, stdout io.Writer) (err error) {
	// A comparison may take minutes. Create the file before, so that an error is reported immediately.
	if v.File != "" {
		file, err := os.Create(v.File)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		v.To.OpenMetrics = file
	}
	// Compare all logs, even after an error: the user wants the state of each host.
	var errs []error
	for _, log := range v.Logs {
		// With one log, the user knows the directory. With several, each error names the directory of its log.
		err := v.compare(ctx, log, stdout)
		if err != nil && len(v.Logs) > 1 {
			err = fmt.Errorf("%s: %w", logquery.Visible(log.Searcher.Dir), err)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// compare compares one log.
func (v *Verification) compare(ctx context.Context, log *logquery.Selection, stdout io.Writer) (err error) {
	gap := verify.Gap{
		Searcher: log.Searcher, PIDs: log.PIDs, From: log.From, To: log.To, Match: log.Match,
		Namespace: v.Namespace, StateDir: v.StateDir,
	}
	r := reporter{v, log, stdout}
	var h verify.Healing
	switch {
	case v.New:
		// There is no comparison before or after, so only the result of the requests shows whether samples are in the
		// database. Zero written samples are an error: the range is probably wrong.
		h.WriteResult, err = verify.Write(ctx, gap, v.To)
		fmt.Fprintln(stdout, written(h.WriteResult))
		if err == nil && h.Written == 0 || h.Refused+h.Unconfirmed+h.Left > 0 {
			err = errors.Join(err, errors.New("no samples were written, or not all of them"))
		}
		return err
	case !v.Heal:
		// A Check reads only. Its report is the final one, so it is stored where Heal stores its second report.
		h.After, err = verify.Check(ctx, gap, v.From)
	default:
		// Heal compares, writes, and compares again. Print the first report only if Heal has written or tried to write.
		// Otherwise both reports are equal, and end prints the second one.
		h, err = verify.Heal(ctx, gap, v.From, v.To)
		if !v.JSON && len(v.Logs) == 1 && h.WriteResult != (push.WriteResult{}) {
			r.print(h.Before, nil)
			fmt.Fprintf(stdout, "\nhealed: %s\n\n", written(h.WriteResult))
		}
	}
	return r.end(h, err)
}

// reporter prints the report about one log.
type reporter struct {
	*Verification
	log *logquery.Selection
	w   io.Writer
}

// finding is a line of the report: a range with the same problem in the same metrics of one or more resources.
type finding struct {
	from, to      time.Time
	seconds       int64
	kind, metrics string // kind is missing or extra
}

// end prints the last report. It returns an error if the command must fail.
//
// The exit status follows from the returned error: 0 for nil, 1 otherwise. Seconds under other labels are not an error,
// because the database has them.
func (r reporter) end(h verify.Healing, err error) error {
	report := h.After
	switch {
	case r.JSON:
		// Embed the report, so its fields are at the top level of the JSON object.
		out := struct {
			Dir string `json:"dir"`
			verify.Report
			Healed *push.WriteResult `json:"healed,omitempty"`
		}{Dir: r.log.Searcher.Dir, Report: report}
		if r.Heal {
			out.Healed = &h.WriteResult
		}
		err = errors.Join(err, logquery.WriteJSON(r.w, out))
	case len(r.Logs) > 1:
		// With several directories, a script compares the lines. All counts are in each line, including zeros.
		fmt.Fprintf(r.w, "%s: compared %d seconds: %d missing, %d different, %d extra, %d not healed, "+
			"%d under other labels; healed %d samples\n",
			logquery.Visible(r.log.Searcher.Dir), report.Seconds, report.Missing, report.Different, report.Extra,
			total(report.NotHealed), total(report.Elsewhere), h.Written)
	default:
		r.print(report, err)
		// Advice is for a gap that the user has to fill. If the samples are in the file, the user knows the next step.
		if inFile := r.File != "" && err == nil; report.Missing > 0 && !inFile {
			r.advise(report, h.WriteResult)
		}
	}
	switch {
	case err != nil:
		return err
	// All seconds of the range are younger than the delay of the database, so nothing was verified.
	case report.From.After(report.To):
		return errors.New("no second was compared")
	case r.File != "" && report.Different+report.Extra+total(report.NotHealed) == 0:
		return nil // all missing samples are in the file
	case !report.Clean() || len(report.NotHealed) > 0:
		return errors.New("the database differs from the log")
	}
	return nil
}

// total returns the number of seconds in the ranges.
//
// A second that is in two ranges counts twice.
func total(list []verify.NotHealed) (n int64) {
	for _, x := range list {
		n += x.Seconds
	}
	return n
}

// written describes the result of writing samples.
func written(r push.WriteResult) string {
	// Left is the number of samples that were not sent, or that did not arrive.
	return fmt.Sprintf("%d samples written, %d refused, %d unconfirmed, %d not sent", r.Written, r.Refused,
		r.Unconfirmed, r.Left)
}

// line prints a line.
func (r reporter) line(format string, args ...any) { fmt.Fprintf(r.w, format+"\n", args...) }

// print prints a report. err is the error of the comparison; with an error the report is incomplete.
func (r reporter) print(report verify.Report, err error) {
	line, show := r.line, r.log.Time
	// The range of an empty comparison is reversed. Its times would confuse a user, so they are omitted.
	compared := !report.From.After(report.To)
	if compared {
		line("%s to %s: %d samples of %d seconds compared", show(report.From), show(report.To), report.Samples,
			report.Seconds)
	}
	if lines := r.lines(report); len(lines) > 0 {
		line("")
		// The lines of the map have no order. Sort them by time: the beginning of a problem is then the first line.
		t := tabwriter.NewWriter(r.w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "KIND\tFROM\tTO\tSECONDS\tMETRICS\tRESOURCES")
		for _, f := range slices.SortedFunc(maps.Keys(lines), func(a, b finding) int {
			return cmp.Or(a.from.Compare(b.from), a.to.Compare(b.to), cmp.Compare(a.kind, b.kind),
				cmp.Compare(a.metrics, b.metrics))
		}) {
			fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\t%s\n",
				f.kind, show(f.from), show(f.to), f.seconds, f.metrics, logquery.List(lines[f]))
		}
		_ = t.Flush()
		line("")
	}
	for _, f := range report.Findings {
		// Values has the first different samples of a finding. Only their number is limited; Different counts all.
		for _, x := range f.Values {
			line("different at %s: %s of %s is %v in the log and %v in the database",
				show(x.At), logquery.Visible(f.Metric), logquery.Visible(resourceOf(f)), x.Log, x.Database)
		}
		if more := f.Different - int64(len(f.Values)); more > 0 {
			line("  and in %d more seconds", more)
		}
	}
	switch {
	// Do not call the database right if a part of the range could not be compared.
	case report.Clean() && err != nil:
		line("the comparison is incomplete")
	case report.Clean() && compared:
		line("no sample is missing, different or extra")
	default:
		line("seconds missing: %d, different: %d, extra: %d", report.Missing, report.Different, report.Extra)
	}
	for _, x := range report.Elsewhere {
		line("under other labels: %s to %s, %d seconds: %s", show(x.From), show(x.To), x.Seconds, x.Reason)
	}
	for _, x := range report.NotHealed {
		line("not written with these labels: %s to %s, %d seconds: %s", show(x.From), show(x.To), x.Seconds, x.Reason)
	}
	for _, note := range report.Notes {
		line("note: %s", note)
	}
	for _, warning := range report.Warnings {
		line("uncertain, because the server warns: %s", warning)
	}
}

// lines returns the lines of the report with the resources of each. It first combines the metrics of each resource that
// have the same range, and then the resources with the same metrics and range.
//
// For example, a database that was unavailable for a minute has a finding for each metric of each resource. The report
// then has one line, with "all" as the metrics and with a list of resources.
func (r reporter) lines(report verify.Report) map[finding][]string {
	// A series is the key of the first step: a range of one resource with the same kind of problem.
	type series struct {
		finding
		resource string
	}
	metrics := map[series][]string{}
	for _, f := range report.Findings {
		// Findings with different values have no range. print shows them separately, value by value.
		for kind, ranges := range map[string][]verify.Range{"missing": f.Missing, "extra": f.Extra} {
			for _, x := range ranges {
				k := series{finding{x.From, x.To, x.Seconds, kind, ""}, resourceOf(f)}
				metrics[k] = append(metrics[k],
					logquery.Visible(strings.TrimPrefix(f.Metric, r.Namespace+"_persecond_")))
			}
		}
	}
	logged := 0 // metrics of a resource in the log
	for _, m := range exporter.Catalogue() {
		if m.Logged && len(m.Labels) > 0 {
			logged++
		}
	}
	lines := map[finding][]string{}
	for _, k := range slices.SortedFunc(maps.Keys(metrics), func(a, b series) int {
		return cmp.Compare(a.resource, b.resource)
	}) {
		names := metrics[k]
		// The names are in the order of Findings, so equal sets of metrics give equal texts, and equal keys.
		if k.metrics = strings.Join(names, ","); len(names) == logged {
			k.metrics = "all"
		}
		lines[k.finding] = append(lines[k.finding], k.resource)
	}
	return lines
}

// resourceOf returns the resource of a finding. The finding of all inbound traffic has no resource.
func resourceOf(f verify.Finding) string {
	if f.Resource == "" {
		return "(all inbound traffic)"
	}
	return f.Resource
}

// blocksAfter is the minimum age of seconds for blocks. Prometheus drops samples from its memory that are older than
// the newest block.
const blocksAfter = 3 * time.Hour

// advise explains how to fill the gap.
//
// A gap of less than three hours is filled with --heal. A server that refuses old samples, as Prometheus does by
// default, needs blocks. promtool creates these files from OpenMetrics text, and Prometheus loads them from its data
// directory.
func (r reporter) advise(report verify.Report, result push.WriteResult) {
	r.line("")
	switch {
	case !r.Heal:
		r.line("Add --heal to write the missing samples. The server must accept samples out of order.")
	case result.Refused > 0:
		r.line("The server refused samples. Prometheus needs an out_of_order_time_window that includes them.")
	case result.Written > 0:
		r.line(
			"The server accepted samples, but does not return them. Prometheus hides samples in a deleted range for " +
				"some hours.",
		)
	}
	var old []verify.Range
	for _, f := range report.Findings {
		old = append(old, slices.DeleteFunc(slices.Clone(f.Missing),
			func(x verify.Range) bool { return time.Since(x.To) < blocksAfter })...)
	}
	if len(old) == 0 {
		r.line("Prometheus can also import samples that are older than three hours. Run this command again then.")
		return
	}
	from := slices.MinFunc(old, func(a, b verify.Range) int { return a.From.Compare(b.From) }).From.Unix()
	to := slices.MaxFunc(old, func(a, b verify.Range) int { return a.To.Compare(b.To) }).To.Unix()
	// The command line repeats the options of this run. Only the range is new, and it has exact Unix seconds, because a
	// relative time such as -6h would have moved.
	r.line("Prometheus can import the samples that are older than three hours. Replace the range of this command by")
	r.line("  --from %d --to %d --heal --openmetrics gap-%d.om", from, to, from)
	r.line("and run it. Then create blocks in DATA, the data directory of Prometheus:")
	r.line("  promtool tsdb create-blocks-from openmetrics gap-%d.om DATA", from)
}
