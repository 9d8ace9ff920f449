package verification

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/windowstat/windowstat/cmd/windowstat/internal/logquery"
	"github.com/windowstat/windowstat/exporter/push"
	"github.com/windowstat/windowstat/exporter/verify"
	"github.com/windowstat/windowstat/internal/redact"
)

// blocksAfter is how old seconds must be for blocks: Prometheus drops from its memory what is older than the newest block.
const blocksAfter = 3 * time.Hour

// advise says how to fill what is missing.
func (r reporter) advise(report verify.Report, result push.WriteResult) {
	say := func(format string, args ...any) { fmt.Fprintf(r.w, format+"\n", args...) }
	say("")
	switch {
	case !r.Heal:
		say("--heal writes what is missing, if the server accepts samples out of order.")
	case result.Refused > 0:
		say("The server refuses samples: Prometheus needs an out_of_order_time_window that reaches back to them.")
	case result.Written > 0:
		say("The server accepted samples and does not show them. Prometheus hides what is written to a deleted range for some hours.")
	}
	var old []verify.Range
	for _, f := range report.Findings {
		for _, x := range f.Missing {
			if time.Since(x.To) >= blocksAfter {
				old = append(old, x)
			}
		}
	}
	if len(old) == 0 {
		say("Once they are three hours old, blocks can be made of them for Prometheus: this command will tell how.")
		return
	}
	from := slices.MinFunc(old, func(a, b verify.Range) int { return a.From.Compare(b.From) }).From.Unix()
	to := slices.MaxFunc(old, func(a, b verify.Range) int { return a.To.Compare(b.To) }).To.Unix()
	command := "  windowstat verify"
	option := func(name, value string) { command += " --" + name + " " + shellWord(value) }
	option("dir", r.log.Searcher.Dir)
	if r.log.Searcher.App != "" {
		option("app", r.log.Searcher.App)
	}
	for _, pid := range r.log.PIDs {
		option("pid", fmt.Sprint(pid))
	}
	for _, p := range r.log.Resources {
		option("resource", p.Text)
	}
	option("url", redact.URL(r.From.URL))
	for _, name := range slices.Sorted(maps.Keys(report.Labels)) {
		option("label", name+"="+logquery.Visible(report.Labels[name]))
	}
	option("namespace", r.Namespace)
	say("For Prometheus, blocks can be made of what is older than three hours; DATA is its data directory:")
	say("%s --from %d --to %d --heal --openmetrics gap-%d.om", command, from, to, from)
	say("  promtool tsdb create-blocks-from openmetrics gap-%d.om DATA", from)
}

// shellWord is a word for a shell.
func shellWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./:=-") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
