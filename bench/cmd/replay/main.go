// Command replay replays a large access log with windowstat replay and with goaccess, in turn, and prints the cost of
// both in the format of Go benchmarks. windowstat also writes a metric log, and goaccess its report as JSON.
package main

import (
	"bufio"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"
)

func main() {
	log := flag.String("log", "../e2e/testdata/apache_access.log.gz", "the access log that is repeated: combined, gzip")
	copies := flag.Int("copies", 100, "how often, each time four days later")
	runs := flag.Int("runs", 5, "how often both replay it")
	flag.Parse()
	if err := run(os.Stdout, *log, *copies, *runs); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(w io.Writer, log string, copies, runs int) error {
	if _, err := exec.LookPath("goaccess"); err != nil {
		return fmt.Errorf("%w; on Debian: apt-get install goaccess", err)
	}
	dir, err := os.MkdirTemp("", "bench-replay-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary, big := filepath.Join(dir, "windowstat"), filepath.Join(dir, "access.log")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", binary, "./cmd/windowstat")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	lines, err := repeat(log, big, copies)
	if err != nil {
		return err
	}
	for i := range runs {
		// Ext4 is slow to create files in a directory with recently deleted files.
		logs := filepath.Join(dir, fmt.Sprint("log", i))
		for _, c := range []struct {
			name string
			*exec.Cmd
		}{
			{"windowstat", exec.Command(binary, "replay", "--metric-log.dir", logs, big)},
			{"goaccess", exec.Command("goaccess", big, "--log-format=COMBINED", "--no-progress", "-o",
				filepath.Join(dir, "report.json"))},
		} {
			if err := measure(w, c.name, c.Cmd, lines); err != nil {
				return err
			}
		}
	}
	return nil
}

// measure runs a command and prints its cost.
func measure(w io.Writer, name string, c *exec.Cmd, lines int) error {
	begin := time.Now()
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", name, err, out)
	}
	took := time.Since(begin)
	cpu := c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	peak := int64(0)
	if usage, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
		peak = usage.Maxrss // KiB on Linux
	}
	_, err := fmt.Fprintf(w, "BenchmarkReplay/%s-%d \t 1\t %d ns/op\t %d cpu-ns/op\t %.0f lines/s\t %.1f peak-MiB\n",
		name, runtime.GOMAXPROCS(0), took.Nanoseconds(), cpu.Nanoseconds(),
		float64(lines)/took.Seconds(), float64(peak)/1024)
	return err
}

// days is the number of days of the log. Each copy is shifted by this number of days.
const days = 4

var date = regexp.MustCompile(`\[\d\d/\w{3}/\d{4}:`)

// repeat writes copies of a log one after the other, and returns their number of lines.
func repeat(from, to string, copies int) (lines int, err error) {
	in, err := os.Open(from)
	if err != nil {
		return 0, err
	}
	defer in.Close() //nolint:errcheck // it was only read
	z, err := gzip.NewReader(in)
	if err != nil {
		return 0, err
	}
	text, err := io.ReadAll(z)
	if err != nil {
		return 0, err
	}
	out, err := os.Create(to)
	if err != nil {
		return 0, err
	}
	w := bufio.NewWriter(out)
	for i := range copies {
		later := map[string]string{}
		for line := range strings.Lines(string(text)) {
			at := date.FindStringIndex(line)
			if at == nil {
				continue
			}
			day := line[at[0]:at[1]]
			if later[day] == "" {
				t, err := time.Parse("[02/Jan/2006:", day)
				if err != nil {
					return 0, errors.Join(err, out.Close())
				}
				later[day] = t.AddDate(0, 0, days*i).Format("[02/Jan/2006:")
			}
			_, _ = w.WriteString(line[:at[0]])
			_, _ = w.WriteString(later[day])
			_, _ = w.WriteString(line[at[1]:])
			lines++
		}
	}
	return lines, errors.Join(w.Flush(), out.Close())
}
