package metriclog_test

import (
	"bufio"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

var kills = flag.Int("kills", 0, "number of processes that TestKilled kills; 0: a few")

// childDir is the environment variable with the log directory for writeUntilKilled. If it is set, the test's executable
// runs this function instead of the tests.
const childDir = "WINDOWSTAT_LOG_DIR"

// TestMain runs writeUntilKilled in a child process of TestKilled, and the tests otherwise.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		if err := writeUntilKilled(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// childOptions returns the options of the child process. It uses small segments, so kills also hit the start of a
// segment.
func childOptions(dir string) metriclog.Options {
	return metriclog.Options{Dir: dir, App: "shop", Location: time.UTC, MaxFileSize: 30_000, MaxFiles: 10_000}
}

// calls returns the number of calls of each resource in a second. The test can check every row with it.
func calls(second int64) map[string]int64 {
	m := map[string]int64{}
	for i := range second*7919%61 + 1 {
		m[fmt.Sprintf("resource|%d", i)] = (second+i)%3 + 1
	}
	return m
}

// writeUntilKilled writes seconds as fast as it can, and prints each flushed second.
func writeUntilKilled(dir string) error {
	o := childOptions(dir)
	last, err := metriclog.Last(o)
	if err != nil {
		return err
	}
	now := last.Add(1500 * ms)
	if last.IsZero() {
		now = start
	}
	c, err := collector.New(collector.Options{Now: func() time.Time { return now }, After: last})
	if err != nil {
		return err
	}
	w, err := metriclog.New(c, o)
	if err != nil {
		return err
	}
	for {
		second := now.Unix()
		for name, n := range calls(second) {
			for range n {
				c.Resource(name).Block("")
			}
		}
		now = now.Add(time.Second)
		if err := w.Flush(); err != nil {
			return err
		}
		fmt.Println(second) // a single write to the pipe
	}
}

// killOne lets a process write for the given time and kills it. It returns the seconds that the process printed.
func killOne(t *testing.T, dir string, after time.Duration) (flushed []int64) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var timer *time.Timer
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if timer == nil {
			timer = time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		}
		second, err := strconv.ParseInt(lines.Text(), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		flushed = append(flushed, second)
	}
	if err := cmd.Wait(); err == nil || stderr.String() != "" || len(flushed) == 0 {
		t.Fatalf("%v, %d seconds, %s", err, len(flushed), stderr.String())
	}
	return flushed
}

// The log of a killed process has every flushed second completely, and the next process continues after them. A reader
// that continues at its last position gets each second once, and none that is removed later.
func TestKilled(t *testing.T) {
	n := *kills
	if n == 0 {
		n = 12
	}
	if testing.Short() {
		n = 4
	}
	rng := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 6))
	const perDir = 20
	seconds := 0
	for n > 0 {
		dir := t.TempDir()
		flushed := map[int64]bool{}
		read := map[int64]int{}
		var at metriclog.Position
		for range min(n, perDir) {
			for _, second := range killOne(t, dir, time.Duration(rng.Int64N(int64(40*ms)))) {
				flushed[second] = true
			}
			at = readNext(t, dir, at, read)
			n--
			if n == 0 {
				break
			}
		}
		for second := range flushed {
			if read[second] == 0 {
				t.Errorf("second %d was flushed, but is missing", second)
			}
		}
		seconds += len(flushed)
	}
	t.Logf("%d seconds", seconds)
}

// readNext reads all rows after a position and checks each second. It returns the new position.
func readNext(t *testing.T, dir string, at metriclog.Position, read map[int64]int) metriclog.Position {
	t.Helper()
	rows, err := metriclog.Searcher{Dir: dir}.Search(metriclog.Query{After: at})
	if err != nil {
		t.Fatal(err)
	}
	perSecond := map[int64]map[string]int64{}
	for row := range rows.All() {
		second := row.Start.Unix()
		if perSecond[second] == nil {
			perSecond[second] = map[string]int64{}
		}
		if _, twice := perSecond[second][row.Resource]; twice {
			t.Fatalf("two rows of %q in second %d", row.Resource, second)
		}
		perSecond[second][row.Resource] = row.Block
	}
	for second, got := range perSecond {
		want := calls(second)
		want[collector.InboundTotal] = 0
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("second %d has\n%v, want\n%v", second, got, want)
		}
		if read[second]++; read[second] > 1 {
			t.Fatalf("second %d was read twice", second)
		}
	}
	if err := rows.Err(); err != nil || rows.Malformed() != 0 {
		t.Fatalf("%d malformed lines, %v", rows.Malformed(), err)
	}
	return rows.Position()
}
