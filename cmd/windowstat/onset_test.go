package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The findings of several logs are printed together, with notes about incomplete data.
func TestOnsetAndBacktest(t *testing.T) {
	const (
		span      = "  --from=2026-01-02 03:04:05  --to=2026-01-02 03:04:08"
		malformed = "windowstat: lines omitted because they are malformed or out of order: 1\n"
	)
	source := "  --zone=UTC  --dir=" + aLog(t)
	for args, wants := range map[string][]string{
		"onset" + source + span: {
			"Onsets\nNo resource changed in comparison with the ten minutes before.\n",
			"\nthe log shop has only 0 seconds before",
		},
		"onset" + source + span + "  --format=json": {"{\n  \"onsets\": [],\n  \"notes\": [\n"},
		"backtest" + source + span + "  --limit=check* qps 60  --limit=nothing qps 1": {
			"qps check* 60  checkout  157    7        47                  1        107      " +
				"2026-01-02 03:04:05+00:00  shop\n",
			"2026-01-02 03:04:05+00:00  2026-01-02 03:04:05+00:00  47                  107      qps check* 60  " +
				"checkout  shop\n",
			"\nThese are lower bounds: the log has calendar seconds",
			"\nthe log has no resource for the limit qps nothing\n",
		},
		"backtest" + source + span + "  --limit=check* qps 60  --format=json": {
			"{\n  \"backtest\": [\n", `"refused_at_least": 47,`,
		},
	} {
		status, out, stderr := execute(t, args)
		if status != 0 || stderr != malformed {
			t.Errorf("%s: status %d: %s", args, status, stderr)
		}
		for _, want := range wants {
			if !strings.Contains(out, want) {
				t.Errorf("%s: no %q in\n%s", args, want, out)
			}
		}
	}
	status, _, stderr := execute(t, "onset"+source+"  --from=2026-01-01  --to=2026-01-01")
	if status != 1 || !strings.Contains(stderr, "no rows from 2026-01-01 ") {
		t.Errorf("status %d: %s", status, stderr)
	}
}

// execute runs a command with arguments, separated by two spaces.
func execute(t *testing.T, args string) (status int, stdout, stderr string) {
	t.Helper()
	var out, err strings.Builder
	status = run(t.Context(), append([]string{"windowstat"}, strings.Split(args, "  ")...), &out, &err)
	return status, out.String(), err.String()
}

// A command reports all wrong options together, and writes no report.
func TestIncidentBadArguments(t *testing.T) {
	t.Parallel()
	dir := aLog(t)
	file := filepath.Join(t.TempDir(), "incident.html")
	all := map[string][]string{
		"onset  --dir=" + dir + "/no  --summary": {"no flag --summary"},
		"onset  --dir=" + dir + "/no  --clock-offset=-1s  --format=csv  x": {
			"onset takes no arguments", "--dir: there is no ", "--clock-offset: -1s is negative",
			`--format: "csv" is not one of table, json`,
		},
		"backtest  --dir=" + dir + "/no  --limit=x  --from=later": {
			"--dir: there is no ", `--limit: "x" is not a resource`, `--from: "later"`,
		},
		"backtest  --from=now":            {"--dir: the directory of the log is needed", "--limit: a limit is needed"},
		"log  --dir=" + dir + "  --onset": {"no flag --onset"},
		"report  --from=-7h  --label=a=b": {
			"-o: a file to write is needed", "--dir: the directory", "--from: more than 6h0m0s before --to",
			"--label: needs --url",
		},
		"report  --dir=" + dir + "  --from=2026-01-01  --to=2026-01-01 01:00  -o=" + file: {
			"no rows in the range or in the ten minutes before",
		},
		"report  --dir=" + dir + "  --from=2026-01-02 03:04  --to=+5m  --url=http://127.0.0.1:1  -o=" + file: {
			"127.0.0.1:1",
		},
		"report  --dir=" + dir + "  --url=ftp://x  -o=" + file: {"--url: "},
		"demo  --incident=fire  --incident.after=-1s": {
			`--incident: "fire" is not one of hang, limit, retries`, "--incident.after: -1s is negative",
		},
		"demo  --incident.after=1s": {"--incident.after: needs --incident"},
	}
	running := map[string]*process{} // concurrently, because one of them retries
	for args := range all {
		running[args] = launch(t, strings.Split(args, "  ")...)
	}
	for args, want := range all {
		p := running[args]
		if p.wait(t) == 0 {
			t.Errorf("%s: %s", args, p.output())
		}
		for _, part := range want {
			if !strings.Contains(p.output(), part) {
				t.Errorf("%s: no %q in\n%s", args, part, p.output())
			}
		}
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("a report was written")
	}
}
