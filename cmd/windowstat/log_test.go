package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// aLog returns a directory with the logs of two applications, from 03:04:05 to 03:04:08 UTC on one day.
func aLog(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, lines := range map[string]string{
		"shop-metrics.log.2026-01-02": `1767323045000|2026-01-02 03:04:05|checkout|100|7|100|10|5|0|1|0
1767323045000|2026-01-02 03:04:05|__total_inbound_traffic__|100|7|100|10|5|0|1|0
nonsense
1767323046000|2026-01-02 03:04:06|cart\x7c\\1|3|0|3|0|1|0|2|0
1767323046000|2026-01-02 03:04:06|__total_inbound_traffic__|3|0|3|0|1|0|2|0
1767323048000|2026-01-02 03:04:08|checkout|50|0|50|0|5|0|1|0
1767323048000|2026-01-02 03:04:08|__total_inbound_traffic__|50|0|50|0|5|0|1|0
`,
		"till-v2-metrics.log.pid12.2026-01-02": "1767323045000|2026-01-02 03:04:05|scan|1|0|1|0|5|0|1|0\n",
		"till-v2-metrics.log.pid34.2026-01-02": "1767323045000|2026-01-02 03:04:05|scan|2|0|2|0|5|0|1|0\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// logged runs windowstat log with a time zone and arguments, separated by two spaces.
func loggedRun(t *testing.T, args string) (status int, stdout, stderr string) {
	t.Helper()
	var out, err strings.Builder
	all := append([]string{"windowstat", "log", "--zone=UTC"}, strings.Split(args, "  ")...)
	status = run(t.Context(), all, &out, &err)
	return status, out.String(), err.String()
}

func TestLog(t *testing.T) {
	dir := aLog(t)
	const day = "  --from=2026-01-02  --to=2026-01-02 23:59"
	for _, tc := range []struct {
		args   string
		status int
		stdout string // without the first two fields of each line, or a part of it
		stderr string // a part
	}{
		{
			"--format=sentinel  --app=shop" + day, 0,
			"checkout,__total_inbound_traffic__,cart\\x7c\\\\1,__total_inbound_traffic__,checkout," +
				"__total_inbound_traffic__",
			"malformed or out of order: 1\n",
		},
		{
			"--format=sentinel" + day, 0,
			"checkout,__total_inbound_traffic__,scan,scan,cart\\x7c\\\\1,__total_inbound_traffic__,checkout," +
				"__total_inbound_traffic__", "",
		},
		{"--format=sentinel  --resource=cart|*  --resource=sc*" + day, 0, `scan,scan,cart\x7c\\1`, ""},
		{"--format=sentinel  --app=till.v2  --pid=34" + day, 0, "scan", ""},
		{
			"--format=sentinel  --app=shop  --from=1767323046  --to=1767323046000", 0,
			"cart\\x7c\\\\1,__total_inbound_traffic__", "",
		},
		// The default of --from is 15 minutes before --to.
		{"--format=sentinel  --app=shop  --to=2026-01-02 03:04:05", 0, "checkout,__total_inbound_traffic__", ""},
		{"--app=shop", 0, "", "no rows from "},
		{
			"--app=shop  --from=2026-01-01  --to=2026-01-01 12:00", 0, "",
			"no rows from 2026-01-01 00:00:00+00:00 to 2026-01-01 12:00:00+00:00; the log is from 2026-01-02 " +
				"03:04:05+00:00 to 2026-01-02 03:04:08+00:00\n",
		},
		{
			"--app=shop  --resource=ch*t  --where=block>0  --where=pass>100" + day, 0, "",
			"no rows from 2026-01-02 00:00:00+00:00 to 2026-01-02 23:59:00+00:00 --resource 'ch*t' --where " +
				"'block>0' --where 'pass>100'; without --where there are 2; the log is from 2026-01-02 " +
				"03:04:05+00:00 to 2026-01-02 03:04:08+00:00\n",
		},
		{
			"--app=shop  --resource=CHECKOUTS" + day, 0, "",
			"--resource 'CHECKOUTS'; the range has 3 resources, the most similar are __total_inbound_traffic__, " +
				"cart|\\\\1, checkout; ",
		},
		{
			"--app=till-v2  --from=2026-01-03  --to=+1h", 0, "",
			"no rows from 2026-01-03 00:00:00+00:00 to 2026-01-03 01:00:00+00:00; the log is from 2026-01-02 " +
				"03:04:05+00:00 to 2026-01-02 03:04:05+00:00\n",
		},
		{
			"--app=shop  --resource=nothing" + day, 0, "",
			"no rows from 2026-01-02 00:00:00+00:00 to 2026-01-02 23:59:00+00:00 --resource 'nothing'; the " +
				"range has 3 resources, the most similar are ",
		},
	} {
		status, stdout, stderr := loggedRun(t, "--dir="+dir+"  "+tc.args)
		var names []string
		for line := range strings.Lines(stdout) {
			names = append(names, strings.Split(line, "|")[2])
		}
		if got := strings.Join(names, ","); status != tc.status || got != tc.stdout ||
			!strings.Contains(stderr, tc.stderr) {
			t.Errorf("%s: status %d\n%s\nwant\n%s\n%s", tc.args, status, got, tc.stdout, stderr)
		}
	}
	if status, out, _ := loggedRun(t, "--dir="+dir+"  --summary"+day); status != 0 ||
		!strings.Contains(out, "4 seconds") ||
		!strings.Contains(out, "till-v2: scan\n") {
		t.Errorf("summary: %d\n%s", status, out)
	}
	if status, out, _ := loggedRun(t, "--dir="+dir+day); status != 0 ||
		!strings.Contains(out, "till-v2.pid12  scan\n") {
		t.Errorf("table: %d\n%s", status, out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var message strings.Builder
	if status := run(ctx, []string{"windowstat", "log", "--dir=" + dir, "--from=2026-01-02"}, io.Discard,
		&message); status != 1 ||
		message.String() != "windowstat: interrupted\n" {
		t.Errorf("interrupted: status %d: %s", status, message.String())
	}
}

func TestLogBadArguments(t *testing.T) {
	dir := aLog(t)
	for _, tc := range []struct {
		args string
		want []string
	}{
		{"--from=now", []string{"--dir: the directory of the log is needed"}},
		{
			"--dir=" + dir + "/no  --zone=X  --from=later  --to=1  --resource=~(  --resource=  --format=xml  extra",
			[]string{
				"--dir: there is no ", `--zone: "X"`, `--from: "later"`, `--to: "1"`, `--resource: "~("`,
				"--resource: is empty", `--format: "xml" is not one of csv, json, sentinel, table`,
				`"extra"`,
			},
		},
		{"--dir=" + dir + "/shop-metrics.log.2026-01-02", []string{"--dir: "}},
		{"--dir=" + dir + "  --dir=" + dir, []string{"--dir: only one directory can be searched"}},
		{"--dir=" + t.TempDir(), []string{"--dir: there are no metric logs"}},
		{"--dir=" + dir + "  --app=bank", []string{
			`--app: there is no log of "bank"`,
			"there are logs of shop, till-v2",
		}},
		{
			"--dir=" + dir + "  --app=till-v2  --pid=13",
			[]string{"--pid: there is no log of process 13; there are till-v2.pid12, till-v2.pid34"},
		},
		{"--dir=" + dir + "  --from=now  --to=-5m", []string{"--from: ", " is after --to, "}},
		{"--dir=" + dir + "  --follow  --to=now  --summary", []string{
			"--follow: cannot be combined with --to",
			"--summary: cannot be combined with --follow",
		}},
		{
			"--dir=" + dir + "  --summary  --format=sentinel",
			[]string{"--format: sentinel has lines of the log, and no sums"},
		},
		{"--dir=" + dir + "  --from=  --to=  --zone=", []string{
			"--from: is empty", "--to: is empty",
			"--zone: is empty",
		}},
		{
			"--dir=" + dir + "  --from=soon  --to=+1x  --step=1500ms  --top=-2  --by=rt_avg  " +
				"--where=block  --where=blocked>0  --where=block>1.5  --where=rt_avg>100  --where=pass==1  " +
				"--format=sentinel",
			[]string{
				`--from: "soon" is not a time; valid times are: now, `, `--to: "+1x" is not a relative time`,
				"--step: 1.5s " +
					"is not whole seconds, from 1s to 24h", "--top: -2 is not",
				`--by: "rt_avg" is not one of the columns that add up: pass, block, complete, exception, occupied_pass`,
				`--where: "block" is not a column, one of > >= < <= = !=`,
				`--where: "blocked" is not one of the columns: pass, block, complete, exception, occupied_pass, ` +
					`in_flight_max, rt_avg`,
				`--where: "block>1.5": block is a whole number, not "1.5"`,
				`--where: "rt_avg>100": rt_avg is a duration, such as 100ms or 1.5s, not "100"`,
				`--where: "pass==1": pass is a whole number, not "=1"`,
				"--format: sentinel has lines of the log, and no sums",
			},
		},
		{"--dir=" + dir + "  --to=+5m", []string{`--to: "+5m" is relative to --from`}},
		{"--dir=" + dir + "  --from=+5m", []string{`--from: "+5m" is relative to --from, and only valid in --to`}},
		{"--dir=" + dir + "  --by=pass", []string{"--by: needs --top or --step or --summary"}},
		{"--dir=" + dir + "  --step=25h", []string{"--step: 25h0m0s is not"}},
		// The order of errors is stable.
		{
			"--dir=" + dir + "  --step=0s  --top=0",
			[]string{"--step: 0s would mean the default; omit the flag\nwindowstat: --top: 0 would mean the " +
				"default; omit the flag"},
		},
		{"--dir=" + dir + "  --follow  --step=1m  --top=1", []string{
			"--step: cannot be combined with --follow",
			"--top: cannot be combined with --follow",
		}},
		{"--dir=" + dir + "  --summary  --step=1m", []string{"--step: cannot be combined with --summary"}},
	} {
		status, out, stderr := loggedRun(t, tc.args)
		if status != 2 || out != "" {
			t.Errorf("%s: status %d, %s", tc.args, status, out)
		}
		for _, part := range tc.want {
			if !strings.Contains(stderr, part) {
				t.Errorf("%s: no %q in\n%s", tc.args, part, stderr)
			}
		}
	}
}
