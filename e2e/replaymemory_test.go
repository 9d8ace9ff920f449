package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Limit on the memory of a replay, regardless of the size of its input.
const replayPeakMB = 350

// TestReplayMemory pipes a log of 100,000 paths into a replay, and checks its peak memory after each GB. It reads 500
// MB, or WINDOWSTAT_E2E_REPLAY_GB.
func TestReplayMemory(t *testing.T) {
	t.Parallel()
	size, step := int64(500e6), int64(100e6)
	if gb, _ := strconv.Atoi(os.Getenv("WINDOWSTAT_E2E_REPLAY_GB")); gb > 0 {
		size, step = int64(gb)*1e9, 1e9
	}
	var printed bytes.Buffer
	c := command(t, buildWindowstat(t), "replay", "--metric-log.dir="+t.TempDir(), "-")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.Stdout, c.Stderr = &printed, &printed
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	written := make(chan int64, 1)
	go func() { written <- writeLog(in, size) }()

	// Bytes read so far, and peak memory.
	type sample struct{ read, peak int64 }
	var samples []sample
	proc := fmt.Sprintf("/proc/%d/", c.Process.Pid)
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	for running := true; running; {
		select {
		case err = <-ended:
			running = false
		case <-time.After(20 * time.Millisecond):
			if s := (sample{procField(proc+"io", "rchar:"), procField(proc+"status", "VmHWM:") / 1024}); s.peak > 0 {
				samples = append(samples, s)
			}
		}
	}
	lines := <-written
	if err != nil || reported(printed.String(), " lines") != fmt.Sprint(lines) {
		t.Fatalf("%d lines: %v\n%s", lines, err, printed.String())
	}
	last := samples[len(samples)-1]
	for at := step; at <= size; at += step {
		for _, s := range samples {
			if s.read >= at || s == last {
				t.Logf("%4.1f GB read: %d MB at most", float64(at)/1e9, s.peak)
				break
			}
		}
	}
	used := c.ProcessState.SysUsage().(*syscall.Rusage)
	t.Logf("%d lines, %v of processor time", lines,
		time.Duration(used.Utime.Nano()+used.Stime.Nano()).Round(time.Second/10))
	if last.peak > replayPeakMB {
		t.Errorf("it has held %d MB", last.peak)
	}
}

// procField returns a number from a file of the system about a process, or 0 if the process has ended.
func procField(path, name string) (n int64) {
	b, _ := os.ReadFile(filepath.Clean(path))
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) > 1 && f[0] == name {
			n, _ = strconv.ParseInt(f[1], 10, 64)
		}
	}
	return n
}

// writeLog writes lines of 100,000 paths, a thousand in each second, and returns the number of lines.
func writeLog(to io.WriteCloser, size int64) (lines int64) {
	const letters = "bcdfghjklmnpqrstvwxyz"
	w := bufio.NewWriterSize(to, 1<<20)
	paths := make([]string, 100_000)
	for i := range paths {
		word := ""
		for n := i; len(word) < 8; n /= len(letters) {
			word += letters[n%len(letters) : n%len(letters)+1]
		}
		paths[i] = "/shop/" + word + "/" + []string{"view", "edit", "pay"}[i%3]
	}
	at, clock := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC), ""
	line := make([]byte, 0, 300)
	for written := int64(0); written < size; lines++ {
		if lines%1000 == 0 {
			clock = at.Add(time.Duration(lines/1000) * time.Second).Format("02/Jan/2006:15:04:05 -0700")
		}
		n := int(lines * 7919 % int64(len(paths)))
		line = append(append(append(line[:0], "83.149.9.216 - - ["...), clock...), `] "GET `...)
		line = append(append(line, paths[n]...),
			[]string{" HTTP/1.1\" 200 ", " HTTP/1.1\" 200 ", " HTTP/1.1\" 404 ", " HTTP/1.1\" 503 "}[n%4]...)
		line = strconv.AppendInt(line, int64(n), 10)
		line = append(line,
			` "http://semicomplete.com/presentations/logstash/" "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 `+
				`Chrome/32.0" 0.`...)
		line = append(strconv.AppendInt(line, 100+lines%900, 10), '\n')
		k, err := w.Write(line)
		if err != nil {
			return lines
		}
		written += int64(k)
	}
	_ = w.Flush() // the count of lines reveals missing ones
	_ = to.Close()
	return lines
}
