package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

var (
	logrotate = program{"logrotate-3.21.0", unpack("logrotate", "3.21.0", "usr/sbin/logrotate")}
	libpopt   = program{"libpopt-1.19", unpack("libpopt0", "1.19", "usr/lib/"+debianLibraries+"/libpopt.so.0.0.2")}
)

// debianLibraries is Debian's directory of shared libraries.
var debianLibraries = map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[runtime.GOARCH]

// TestRotation has logrotate rotate a log that gets 1,000 lines a second ten times, in each of its ways and in both by
// turns. All lines that are in any file afterwards are counted. With create, these are all lines of the log.
func TestRotation(t *testing.T) {
	t.Parallel()
	binary, rotator, preload := buildWindowstat(t), logrotate.path(t), libpopt.path(t)
	for name, ways := range map[string][]string{
		"copytruncate": {"copytruncate"}, "create": {"create"}, "both": {"create", "copytruncate"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path, state := filepath.Join(dir, "access.log"), filepath.Join(dir, "state")
			var printed bytes.Buffer
			pages := freeAddress(t)
			follower := command(t, binary, "replay", "--follow",
				"--nginx-format=$msec $status $request_time $request_uri", "--tolerance=1s",
				"--web.listen-address="+pages, path)
			follower.Stdout = &printed
			f := appendable(t, path)
			startReady(t, follower, saysReady(pages)) // the follower begins at the end of the log
			written := 0
			serve := func(lines int) {
				for range lines {
					written++
					now := time.Now()
					fmt.Fprintf(f, "%d.%03d 200 0.000 /line/%d\n", now.Unix(), now.Nanosecond()/1e6, written)
					time.Sleep(time.Millisecond)
				}
			}
			truncated := 0
			// noticed reports whether the follower has observed all rotations so far. A stopped follower would never
			// detect a file that is created and removed during its pause.
			noticed := func() bool {
				now, err := os.Stat(path)
				files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", follower.Process.Pid))
				return err == nil && slices.ContainsFunc(files, func(file string) bool {
					at, err := os.Stat(file)
					return err == nil && os.SameFile(at, now)
				}) && replayCount(t, pages, "truncations_total") >= truncated
			}
			for i := range 10 {
				way := ways[i%len(ways)]
				config := filepath.Join(dir, way+".conf")
				if err := os.WriteFile(config,
					[]byte(path+" {\n\trotate 20\n\tdelaycompress\n\tcompress\n\t"+way+"\n}\n"), 0o600); err != nil {
					t.Fatal(err)
				}
				serve(300)
				for deadline := time.Now().Add(catchUp); !noticed() && time.Now().Before(deadline); {
					time.Sleep(20 * time.Millisecond)
				}
				c := exec.CommandContext(t.Context(), rotator, "--force", "--state", state, config)
				c.Env = append(os.Environ(), "LD_PRELOAD="+preload)
				done := make(chan error, 1)
				go func() {
					out, err := c.CombinedOutput()
					if err != nil {
						err = fmt.Errorf("%w: %s", err, out)
					}
					done <- err
				}()
				for running := true; running; {
					select {
					case err := <-done:
						if err != nil {
							t.Fatal(err)
						}
						running = false
					default:
						serve(1)
					}
				}
				serve(20) // to the old file after create
				if way == "create" {
					f = appendable(t, path)
				} else {
					truncated++
				}
			}
			serve(100)
			kept, _ := strconv.Atoi(shell(t, `zcat -f "$1"* | grep -c /line/ | tr -d '\n'`, path))
			for deadline := time.Now().Add(catchUp); replayCount(t, pages, "lines_total{") < kept &&
				time.Now().Before(deadline); {
				time.Sleep(100 * time.Millisecond)
			}
			if err := follower.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if err := follower.Wait(); err != nil {
				t.Error(err, printed.String())
			}
			counted, _ := strconv.Atoi(reported(printed.String(), " lines"))
			t.Logf("%d lines written, %d counted, %d are in the files", written, counted, kept)
			if counted < kept || counted > written || name == "create" && counted != written {
				t.Errorf("%d lines written, %d counted, %d are in the files:\n%s", written,
					counted, kept, printed.String())
			}
		})
	}
}

// replayCount returns the number of lines that a replay has counted so far, over all labels.
func replayCount(t *testing.T, pages, metric string) (n int) {
	t.Helper()
	for series, value := range parsePage([]byte(body(t, "http://"+pages+metricsPath))) {
		if strings.HasPrefix(series, "windowstat_replay_"+metric) {
			n += int(value)
		}
	}
	return n
}

func appendable(t *testing.T, path string) *os.File {
	t.Helper()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}
