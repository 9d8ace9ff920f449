package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Onsets and backtests of several logs are printed together; what limits the answers stands below.
func TestOnsetAndBacktest(t *testing.T) {
	dir := aLog(t)
	status, out, stderr := loggedRun(t, "--dir="+dir+"  --from=2026-01-02 03:04:05  --to=2026-01-02 03:04:08  --onset  --backtest=check* qps 60  --backtest=nothing qps 1")
	for _, want := range []string{
		"Onset\nNothing left what it was in the ten minutes before.\n",
		"qps check* 60  checkout  157    7             47                  1           107      2026-01-02 03:04:05+00:00  shop\n",
		"2026-01-02 03:04:05+00:00  2026-01-02 03:04:05+00:00  47        107      qps check* 60  checkout  shop\n",
		"\nIt is at least, because a log has calendar seconds", "\nthe log has no resource for the limit qps nothing\n", "\nthe log shop has only 0 seconds before",
	} {
		if status != 0 || stderr != "windowstat: lines that were left out, because they are malformed or out of place: 1\n" || !strings.Contains(out, want) {
			t.Errorf("%d: no %q in\n%s\n%s", status, want, out, stderr)
		}
	}
	status, out, _ = loggedRun(t, "--dir="+dir+"  --from=2026-01-02 03:04:05  --to=2026-01-02 03:04:08  --onset  --format=json")
	if status != 0 || !strings.Contains(out, `"onsets": []`) || strings.Contains(out, "backtest") {
		t.Errorf("%d:\n%s", status, out)
	}
	if status, _, stderr := loggedRun(t, "--dir="+dir+"  --from=2026-01-01  --to=2026-01-01  --onset"); status != 1 || !strings.Contains(stderr, "no rows from 2026-01-01 ") {
		t.Errorf("%d: %s", status, stderr)
	}
}

// All mistakes are reported at once, and no report is written.
func TestIncidentBadArguments(t *testing.T) {
	t.Parallel()
	dir := aLog(t)
	file := filepath.Join(t.TempDir(), "incident.html")
	all := map[string][]string{
		"log  --dir=" + dir + "/no  --onset  --summary  --clock-offset=-1s  --backtest=x  --format=csv": {
			"--dir: there is no ", "--onset: not with --summary", "--clock-offset: -1s is negative", `--backtest: "x" is not a resource`, `--format: "csv" is not one of json, table`,
		},
		"log  --dir=" + dir + "  --dir=" + dir:                                                               {"--dir: several are for --onset and --backtest only"},
		"log  --dir=" + dir + "  --clock-offset=1s":                                                          {"--clock-offset: needs --onset"},
		"report  --from=-7h  --label=a=b  --title=":                                                          {"-o: the file to write is needed", "--dir: the directory", "--from: more than 6h0m0s before --to", "--label: needs --url", "--title: is empty"},
		"report  --dir=" + dir + "  --from=2026-01-01  --to=2026-01-01 01:00  -o=" + file:                    {"there is nothing to look at"},
		"report  --dir=" + dir + "  --from=2026-01-02 03:04  --to=+5m  --url=http://127.0.0.1:1  -o=" + file: {"127.0.0.1:1"},
		"report  --dir=" + dir + "  --url=ftp://x  -o=" + file:                                               {"--url: "},
		"demo  --incident=fire  --incident.after=-1s":                                                        {`--incident: "fire" is not one of hang, limit, retries`, "--incident.after: -1s is negative"},
		"demo  --incident.after=1s":                                                                          {"--incident.after: needs --incident"},
	}
	running := map[string]*process{} // all at once, as one of them asks several times
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
