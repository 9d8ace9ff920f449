package e2e

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// sentinelSeconds is the number of seconds that the test compares.
const sentinelSeconds = 600

// sentinelLive returns how long the logs are written while they are followed; the seconds before exist at the start.
// WINDOWSTAT_E2E_SENTINEL=10m writes all of them live.
func sentinelLive(t *testing.T) int64 {
	text := os.Getenv("WINDOWSTAT_E2E_SENTINEL")
	if text == "" {
		return 90
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Minute || d > sentinelSeconds*time.Second {
		t.Fatalf("WINDOWSTAT_E2E_SENTINEL=%s: 1m to 10m are allowed", text)
	}
	return int64(d / time.Second)
}

// A sentinelRow is a row of a metric log: pass, block, success, exception, response time, occupied pass, concurrency.
type sentinelRow [7]int64

// A sentinelTruth has the rows of a process by resource and second.
type sentinelTruth map[string]map[int64]sentinelRow

// javaWriter writes a metric log in the format of Sentinel for Java, with files of 20 kB, and keeps the truth.
type javaWriter struct {
	t    *testing.T
	base string // path of the files without date
	n    int    // number of the file
	size int

	truth sentinelTruth
}

// write writes the row of each resource in a second.
func (w *javaWriter) write(second int64) {
	at := time.Unix(second, 0)
	path := w.base + "." + at.Format(time.DateOnly)
	if w.size > 20_000 {
		w.n, w.size = w.n+1, 0
	}
	if w.n > 0 {
		path += "." + strconv.Itoa(w.n)
	}
	var text strings.Builder
	for i := range 8 {
		if i > 0 && rand.IntN(i) > 0 {
			continue
		}
		name := fmt.Sprintf("GET /java/%d", i)
		if i == 7 {
			name = "__total_inbound_traffic__"
		}
		success := rand.Int64N(50)
		row := sentinelRow{
			1 + rand.Int64N(100), rand.Int64N(3), success, success / 3,
			rand.Int64N(900), rand.Int64N(2), 0,
		}
		fmt.Fprintf(&text, "%d|%s|%s|%d|%d|%d|%d|%d|%d|%d|0\n",
			second*1000, at.Format(time.DateTime), name, row[0], row[1], row[2], row[3], row[4], row[5], row[6])
		if w.truth[name] == nil {
			w.truth[name] = map[int64]sentinelRow{}
		}
		w.truth[name][second] = row
	}
	record := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(second)), uint64(w.size))
	for file, b := range map[string][]byte{path + ".idx": record, path: []byte(text.String())} {
		f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err == nil {
			_, err = f.Write(b)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			w.t.Error(err)
		}
	}
	w.size += text.Len()
}

// readSentinelLog reads the truth from the files that sentinel-golang wrote.
func readSentinelLog(t *testing.T, pattern string) sentinelTruth {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	truth := sentinelTruth{}
	for _, path := range files {
		if strings.HasSuffix(path, ".idx") {
			continue
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			fields := strings.Split(strings.TrimSpace(line), "|")
			if len(fields) != 11 {
				t.Fatalf("%s has the line %q", path, line)
			}
			var row sentinelRow
			for i := range row {
				if row[i], err = strconv.ParseInt(fields[3+i], 10, 64); err != nil {
					t.Fatal(err)
				}
			}
			ms, err := strconv.ParseInt(fields[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			if truth[fields[2]] == nil {
				truth[fields[2]] = map[int64]sentinelRow{}
			}
			truth[fields[2]][ms/1000] = row
		}
	}
	return truth
}

// compareSentinel compares all seconds of a process in a server with its log. It returns the number of equal cells, and
// of cells that differ or are missing.
func compareSentinel(t *testing.T, s *server, selector string, truth sentinelTruth, from, to int64) (equal, wrong int) {
	t.Helper()
	present := map[int64]bool{}
	for _, rows := range truth {
		for second := range rows {
			present[second] = true
		}
	}
	for i, metric := range []string{
		"pass", "block", "complete", "exception", "rt_avg_seconds", "occupied_pass", "in_flight_max",
	} {
		stored := map[string]map[int64]float64{}
		for _, prefix := range []string{"", "inbound_"} {
			for _, x := range s.queryAt(t, fmt.Sprintf("windowstat_persecond_%s%s{%s}[%ds]", prefix, metric, selector,
				to-from+60), float64(to)+30) {
				name := x.Metric["resource"]
				if prefix != "" {
					name = "__total_inbound_traffic__"
				}
				stored[name] = map[int64]float64{}
				for _, v := range x.Values {
					stored[name][v.at/1000] = v.value
					if _, ok := truth[name][v.at/1000]; !ok && (v.value != 0 || !present[v.at/1000]) {
						wrong++
						t.Logf("%s: %s of %s in second %d is %v, and the log has no row", s.name,
							metric, name, v.at/1000, v.value)
					}
				}
			}
		}
		for name, rows := range truth {
			for second, row := range rows {
				if second < from || second >= to {
					continue
				}
				want, absent := float64(row[i]), false
				switch metric {
				case "rt_avg_seconds":
					want, absent = want/1000, row[2] == 0
				case "in_flight_max":
					absent = want == 0
				}
				got, ok := stored[name][second]
				if ok == absent || ok && math.Abs(got-want) > 1e-9 {
					if wrong++; wrong < 5 {
						t.Logf("%s: %s of %s in second %d is %v, %t, want %v, %t", s.name, metric, name,
							second-from, got, ok, want, !absent)
					}
					continue
				}
				equal++
			}
		}
	}
	return equal, wrong
}

// TestSentinel follows a log that the real sentinel-golang writes, and three logs in the format of Sentinel for Java:
// of a punctual process, of a process that dies, and of a process that flushes every twenty seconds. Each tenth
// response is broken off, and the follower is restarted and killed. Every row of 600 seconds is in each server, once
// and with its numbers.
func TestSentinel(t *testing.T) {
	t.Parallel()
	live, dir, windowstat := sentinelLive(t), t.TempDir(), buildWindowstat(t)
	addr := freeAddress(t)
	writers := map[string]*javaWriter{}
	for _, name := range []string{"shop-metrics.log", "till-metrics.log.pid11", "batch-metrics.log.pid13"} {
		writers[name] = &javaWriter{t: t, base: filepath.Join(dir, name), truth: sentinelTruth{}}
	}
	shop, till, batch := writers["shop-metrics.log"], writers["till-metrics.log.pid11"],
		writers["batch-metrics.log.pid13"]
	start := time.Now().Unix()
	from := start + live - sentinelSeconds
	for second := from; second < start; second++ {
		shop.write(second)
	}

	app := command(t, os.Args[0])
	app.Env = append(os.Environ(), sentinelAppDir+"="+dir)
	app.Stderr = os.Stderr
	if err := app.Start(); err != nil {
		t.Fatal(err)
	}
	state := t.TempDir()
	follow := func() *exec.Cmd {
		c := command(t, os.Args[0])
		c.Env = append(os.Environ(), sentinelDir+"="+dir, sentinelStateDir+"="+state, childAddress+"="+addr)
		c.Stderr = os.Stderr
		startReady(t, c, listens(addr))
		return c
	}
	follower := follow()
	j := job{
		name: "sentinel", path: secondsPath, targets: []string{addr},
		interval: 3 * time.Second, timeout: 3 * time.Second,
	}
	vm := prepareServer(t, "victoria", victoria, j)
	vm.args = append(vm.args, "-dedup.minScrapeInterval=1ms") // for responses that are sent again
	vm.start(t)
	servers := []*server{
		startServer(t, "prometheus-3", prometheus3, j), startServer(t, "prometheus-2", prometheus2, j), vm,
	}

	var all sync.WaitGroup
	all.Go(func() {
		var flush int64 = start
		for second := start; second < start+live; second++ {
			time.Sleep(time.Until(time.Unix(second+1, int64(rand.IntN(900_000_000)))))
			shop.write(second)
			if second < start+live/2 {
				till.write(second)
			}
			if second-flush >= 20 || second == start+live-1 {
				for ; flush <= second; flush++ {
					batch.write(flush)
				}
			}
		}
	})
	time.Sleep(time.Duration(live/3) * time.Second)
	if err := errors.Join(follower.Process.Signal(syscall.SIGTERM), follower.Wait()); err != nil {
		t.Errorf("the follower does not end well: %v", err)
	}
	time.Sleep(4 * time.Second)
	follower = follow()
	time.Sleep(time.Duration(live/3) * time.Second)
	_ = follower.Process.Kill()
	_ = follower.Wait()
	follower = follow()
	all.Wait()
	if err := errors.Join(app.Process.Signal(syscall.SIGTERM), app.Wait()); err != nil {
		t.Error(err)
	}
	to := time.Now().Unix() - 2
	golang := readSentinelLog(t, filepath.Join(dir, "go-app-metrics.log.pid*"))
	time.Sleep(time.Until(time.Unix(to, 0).Add(60 * time.Second))) // lag, the delay of the late log, a broken scrape
	for _, s := range servers {
		for selector, truth := range map[string]sentinelTruth{
			`app="shop",pid=""`: shop.truth, `app="till",pid="11"`: till.truth, `app="batch",pid="13"`: batch.truth,
			fmt.Sprintf(`app="go-app",pid="%d"`, app.Process.Pid): golang,
		} {
			equal, wrong := compareSentinel(t, s, selector, truth, from, to)
			t.Logf("%s: {%s}: %d cells equal, %d wrong", s.name, selector, equal, wrong)
			if wrong > 0 || equal < int(live) {
				t.Errorf("%s: {%s}: %d cells are wrong, %d equal", s.name, selector, wrong, equal)
			}
		}
		if n := len(shop.truth["GET /java/0"]); n != sentinelSeconds {
			t.Errorf("%d seconds", n)
		}
		// The verifier finds every sample, too.
		for app, pid := range map[string]string{"shop": "", "till": "11", "go-app": strconv.Itoa(app.Process.Pid)} {
			arguments := []string{
				windowstat, "verify", "--dir", dir, "--app", app, "--state-dir", state, "--url", "http://" + s.addr,
				"--from", strconv.FormatInt(from, 10), "--to", strconv.FormatInt(to, 10),
				"--label", "job=sentinel", "--label", "app=" + app,
			}
			if pid != "" {
				arguments = append(arguments, "--pid", pid, "--label", "pid="+pid)
			}
			if text, err := output(t.Context(), ".", arguments...); err != nil {
				t.Errorf("%s: %s: %v\n%s", s.name, app, err, text)
			}
		}
	}
	_ = follower.Process.Kill()
	_ = follower.Wait()
}
