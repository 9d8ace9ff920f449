package e2e

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

// Contents of a real access log, computed with standard Unix tools. Each command prints lines of a count and the
// counted item.
const (
	realLog = "testdata/apache_access.log.gz"

	countLines    = `zcat "$1" | wc -l`
	countStatuses = `zcat "$1" | awk -F'"' '{ split($3, a, " "); print a[1] }' | sort | uniq -c`
	countSeconds  = `zcat "$1" | awk '{ print substr($4, 2) }' | sort | uniq -c`
	countPeak     = `zcat "$1" | awk '{ print substr($4, 2) }' | sort | uniq -c | awk '{ print $1, $2 }' |
		sed 's|\([0-9]*\)/May/\(2015\):|\2-05-\1 |' | sort -k1,1rn -k2 | sed -n 1p`
	countFailures = `zcat "$1" | awk -F'"' '$3 ~ /^ 5/' | awk '{ print substr($4, 2) }' | sort | uniq -c`

	// The requests without escapes in their targets, because awk cannot decode them, and the resources of these
	// requests. A segment that identifies a single thing is :id. A name is unmatched until its first successful
	// response.
	plainLines     = `zcat "$1" | awk -F'"' '$2 !~ /%/'`
	countResources = plainLines + ` | awk -F'"' '{ print $2 $3 }' | awk '{
		sub(/\?.*/, "", $2)
		n = split($2, segment, "/")
		name = ""
		for (i = 1; i <= n; i++) {
			s = segment[i]
			if (s == "" || s == ".") continue
			digits = s; d = gsub(/[0-9]/, "", digits)
			dashes = s; k = gsub(/[-_]/, "", dashes)
			if (s ~ /^[0-9]+$/ || length(s) > 48 ||
				s ~ /^[0-9a-fA-F]+$/ && d > 0 && length(s) >= 8 ||
				s ~ /^[0-9a-zA-Z_-]+$/ && d > 1 && k < 2 && length(s) >= 16) s = ":id"
			name = name "/" s
		}
		if (name == "") name = "/"
		calls[known[$1 " " name] ? $1 " " name : "unmatched"]++
		if ($4 ~ /^(2..|101|304)$/) known[$1 " " name] = 1
	} END {
		for (name in calls) print calls[name], name
	}'`
)

// TestReplay replays a real access log, and compares the report and the metric log with the output of zcat, awk, sort
// and uniq.
func TestReplay(t *testing.T) {
	t.Parallel()
	binary := buildWindowstat(t)
	dir := t.TempDir()
	printed := shell(t, `"$2" replay --metric-log.dir="$3" --metric-log.app=web "$1"`, realLog, binary, dir)

	lines := strings.TrimSpace(shell(t, countLines, realLog))
	if got := reported(printed, " lines"); got != lines || lines != "10000" {
		t.Errorf("%s lines; wc says %s", got, lines)
	}
	for status, n := range counts(t, countStatuses) {
		if got := reported(printed, " calls with status "+status); got != strconv.Itoa(n) {
			t.Errorf("%s calls with status %s; awk counts %d", got, status, n)
		}
	}

	rows := rowsIn(t, dir)
	passed, failed := map[string]int{}, map[string]int{}
	for _, row := range rows {
		if row.Resource != collector.InboundTotal {
			continue
		}
		at := row.Start.Format("02/Jan/2006:15:04:05")
		passed[at] = int(row.Pass)
		if row.Exception > 0 {
			failed[at] = int(row.Exception)
		}
		if row.Success != row.Pass || row.RT != 0 {
			t.Errorf("%s: %d passed, %d completed in %v", at, row.Pass, row.Success, row.RT)
		}
	}
	compareCounts(t, "calls", passed, counts(t, countSeconds))
	compareCounts(t, "exceptions", failed, counts(t, countFailures))

	// The summary shows the first of the seconds with the most calls.
	most := strings.Fields(shell(t, countPeak, realLog))
	for line := range strings.Lines(printed) {
		if total, ok := strings.CutSuffix(line, collector.InboundTotal+"\n"); ok {
			columns := strings.Fields(total)
			if got := columns[2:4]; columns[0] != lines || got[0] != most[0] ||
				got[1]+" "+strings.TrimSuffix(columns[4], "+00:00") != most[1]+" "+most[2] {
				t.Errorf("the summary ends with %q; the tools say that the peak is %v", total, most)
			}
			printed = ""
		}
	}
	if printed != "" {
		t.Errorf("no sum in the summary:\n%s", printed)
	}
	t.Logf("%s lines, %d rows, %d seconds with calls, the peak is %v", lines, len(rows), len(passed), most)
}

// TestReplayResources replays lines from a file, and compares the resources with the output of awk.
func TestReplayResources(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	shell(t, plainLines+` > "$3/plain" && "$2" replay --path-depth=16 --max-resources=5000 --max-path-values=1000 `+
		`--metric-log.dir="$3/log" "$3/plain"`,
		realLog, buildWindowstat(t), dir)
	passed := map[string]int{}
	for _, row := range rowsIn(t, filepath.Join(dir, "log")) {
		if row.Resource != collector.InboundTotal {
			passed[row.Resource] += int(row.Pass)
		}
	}
	compareCounts(t, "calls", passed, counts(t, countResources))
	t.Logf("%d resources", len(passed))
}

// shell runs a command with arguments, and returns its output.
func shell(t *testing.T, script string, args ...string) string {
	t.Helper()
	out, err := output(t.Context(), ".", append([]string{"bash", "-o", "pipefail", "-c", script, "bash"}, args...)...)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// counts returns the counts that a command ending in uniq -c prints about the log.
func counts(t *testing.T, script string) map[string]int {
	t.Helper()
	all := map[string]int{}
	for line := range strings.Lines(shell(t, script, realLog)) {
		count, what, _ := strings.Cut(strings.TrimSpace(line), " ")
		n, err := strconv.Atoi(count)
		if err != nil {
			t.Fatal(err)
		}
		all[what] = n
	}
	if len(all) == 0 {
		t.Fatalf("%s prints nothing", script)
	}
	return all
}

// reported returns the number before a text of the report.
func reported(report, what string) string {
	for line := range strings.Lines(report) {
		if n, ok := strings.CutSuffix(line, what+"\n"); ok {
			return strings.TrimSpace(n)
		}
	}
	return "no"
}

func compareCounts(t *testing.T, what string, got, want map[string]int) {
	t.Helper()
	if maps.Equal(got, want) {
		return
	}
	for k, n := range want {
		if got[k] != n {
			t.Errorf("%s of %s: %d, the tools say %d", what, k, got[k], n)
		}
	}
	for k, n := range got {
		if want[k] == 0 {
			t.Errorf("%s of %s: %d, the tools say nothing", what, k, n)
		}
	}
}

func rowsIn(t *testing.T, dir string) []metriclog.Row {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*.log.????-??-??", "*.log.????-??-??.*[0-9]"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	rows, err := readRows(files)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// TestReplayFollow repeatedly kills a process that follows a log, and starts another. In the end the metric log has
// each line once, in its second.
func TestReplayFollow(t *testing.T) {
	t.Parallel()
	binary, dir := buildWindowstat(t), t.TempDir()
	path, logs, pages := filepath.Join(dir, "access.log"), filepath.Join(dir, "log"), freeAddress(t)
	prepare := func() *exec.Cmd {
		c := command(t, binary, "replay", "--follow", "--nginx-format=$msec $status $request_time", "--tolerance=2s",
			"--metric-log.dir="+logs, "--web.listen-address="+pages, path)
		c.Stderr = os.Stderr
		return c
	}
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	passed, completed := map[int64]int64{}, map[int64]int64{}
	serve := func(d time.Duration) {
		for begin := time.Now(); time.Since(begin) < d; time.Sleep(3 * time.Millisecond) {
			ended, took := time.Now().Truncate(time.Millisecond), time.Duration(rand.IntN(1500))*time.Millisecond
			if _, err := fmt.Fprintf(file, "%d.%03d 200 %d.%03d\n", ended.Unix(), ended.Nanosecond()/1e6,
				took/time.Second, took%time.Second/time.Millisecond); err != nil {
				t.Fatal(err)
			}
			passed[ended.Add(-took).Unix()]++
			completed[ended.Unix()]++
		}
	}
	process := prepare()
	startReady(t, process, saysReady(pages)) // the first process begins at the end of the log
	for len(rowsIn(t, logs)) == 0 {
		serve(time.Second) // later ones continue after the metric log
	}
	for _, signal := range []syscall.Signal{
		syscall.SIGKILL, syscall.SIGTERM, syscall.SIGKILL,
		syscall.SIGKILL, syscall.SIGTERM,
	} {
		serve(rand.N(5 * time.Second))
		// Before the process is ready it may not handle SIGTERM yet.
		for deadline := time.Now().Add(catchUp); signal == syscall.SIGTERM && saysReady(pages)() != nil &&
			time.Now().Before(deadline); {
			serve(20 * time.Millisecond)
		}
		if err := process.Process.Signal(signal); err != nil {
			t.Fatal(err)
		}
		if err := process.Wait(); signal == syscall.SIGTERM && err != nil {
			t.Errorf("the process does not end well: %v", err)
		}
		serve(rand.N(time.Second))
		process = prepare()
		if err := process.Start(); err != nil {
			t.Fatal(err)
		}
	}
	serve(2 * time.Second)

	last := slices.Max(slices.Collect(maps.Keys(completed)))
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		rows := rowsIn(t, logs)
		if n := len(rows); n > 0 && rows[n-1].Start.Unix() >= last || time.Now().After(deadline) {
			break
		}
	}
	if err := errors.Join(process.Process.Signal(syscall.SIGTERM), process.Wait()); err != nil {
		t.Error(err)
	}
	gotPassed, gotCompleted := map[int64]int64{}, map[int64]int64{}
	for _, row := range rowsIn(t, logs) {
		if row.Resource == collector.InboundTotal && row.Pass > 0 {
			gotPassed[row.Start.Unix()] += row.Pass
		}
		if row.Resource == collector.InboundTotal && row.Success > 0 {
			gotCompleted[row.Start.Unix()] += row.Success
		}
	}
	if !maps.Equal(gotPassed, passed) {
		t.Errorf("passed: got %v, want %v", gotPassed, passed)
	}
	if !maps.Equal(gotCompleted, completed) {
		t.Errorf("completed: got %v, want %v", gotCompleted, completed)
	}
	t.Logf("%d seconds with calls", len(completed))
}

// TestReplayDiskFull fills the disk in the middle of a replay. The files then contain the beginning of the whole
// result, in whole seconds, and a later replay cannot add anything to them by mistake.
func TestReplayDiskFull(t *testing.T) {
	t.Parallel()
	binary, whole, part := buildWindowstat(t), t.TempDir(), t.TempDir()
	shell(t, `"$2" replay --metric-log.dir="$3" "$1"`, realLog, binary, whole)
	// Limit the size of each file in KiB; the log has a file for each day.
	_, err := output(t.Context(), ".", "bash", "-c", `ulimit -f 240; exec "$2" replay --metric-log.dir="$3" "$1"`,
		"bash", realLog, binary, part)
	if err == nil || !strings.Contains(err.Error(), "exit status 1") ||
		strings.Count(err.Error(), "file too large") != 1 {
		t.Fatalf("error: %v", err)
	}
	want, got := rowsIn(t, whole), rowsIn(t, part)
	if n := len(got); n == 0 || n >= len(want) || !slices.Equal(got, want[:n]) ||
		got[n-1].Resource != collector.InboundTotal {
		t.Errorf("%d rows of %d", len(got), len(want))
	}
	t.Logf("%d rows of %d", len(got), len(want))
}
