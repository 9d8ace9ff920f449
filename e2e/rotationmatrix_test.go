package e2e

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// rotating is a log with one kind of rotation, and its writer.
type rotating struct {
	dir    string
	open   string // the path that the server writes to
	prefix string // of each line
	file   *os.File
	lines  int
	times  int
	errs   []error
}

// rotationWays holds the kinds of log rotation. Each function creates the initial files, and returns a function that
// rotates them.
var rotationWays = []struct {
	name  string
	begin func(l *rotating) (follow string, rotate func())
}{
	{"rename", func(l *rotating) (string, func()) {
		return l.open, func() { l.moveTo(filepath.Dir(l.open)); l.reopen() }
	}},
	{"olddir", func(l *rotating) (string, func()) {
		return l.open, func() { l.moveTo(filepath.Join(l.dir, "old")); l.reopen() }
	}},
	{"symlink to another directory", func(l *rotating) (string, func()) {
		link := filepath.Join(l.dir, "access.log")
		l.open = filepath.Join(l.dir, "data", "web.log")
		l.do(os.Mkdir(filepath.Dir(l.open), 0o755), os.Symlink(l.open, link))
		return link, func() { l.moveTo(filepath.Dir(l.open)); l.reopen() }
	}},
	{"copytruncate", func(l *rotating) (string, func()) {
		return l.open, func() {
			b, err := os.ReadFile(l.open)
			l.times++
			l.do(err, os.WriteFile(fmt.Sprintf("%s.%d", l.open, l.times), b, 0o644), os.Truncate(l.open, 0))
		}
	}},
	{"gz", func(l *rotating) (string, func()) {
		return l.open, func() { l.pack(l.moveTo(filepath.Dir(l.open))); l.reopen() }
	}},
	{"container runtime", func(l *rotating) (string, func()) {
		// The kubelet moves and compresses the file behind the symbolic link. Each start of the container points the
		// link to another file.
		link, pod := filepath.Join(l.dir, "shop.log"), filepath.Join(l.dir, "pods", "shop")
		l.open, l.prefix = filepath.Join(pod, "0.log"), "2026-11-22T10:00:02.123456789Z stdout F "
		l.do(os.MkdirAll(pod, 0o755), os.Symlink(l.open, link))
		before := ""
		return link, func() {
			if l.times++; l.times%2 == 0 {
				l.open = filepath.Join(pod, "1.log")
				l.do(os.Remove(link), os.Symlink(l.open, link))
				l.reopen()
				return
			}
			if before != "" {
				l.pack(before)
			}
			before = l.open + ".20261122-10111" + fmt.Sprint(l.times)
			l.do(os.Rename(l.open, before))
			l.reopen()
		}
	}},
}

func (l *rotating) do(errs ...error) { l.errs = append(l.errs, errs...) }

func (l *rotating) moveTo(dir string) (to string) {
	l.times++
	to = filepath.Join(dir, fmt.Sprintf("%s.%d", filepath.Base(l.open), l.times))
	l.do(os.MkdirAll(dir, 0o755), os.Rename(l.open, to))
	return to
}

func (l *rotating) reopen() {
	f, err := os.OpenFile(l.open, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if l.file != nil {
		err = errors.Join(err, l.file.Close())
	}
	l.do(err)
	l.file = f
}

func (l *rotating) pack(path string) {
	b, err := os.ReadFile(path)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, failed := z.Write(b)
	l.do(err, failed, z.Close(), os.WriteFile(path+".gz", packed.Bytes(), 0o644), os.Remove(path))
}

func (l *rotating) serve(lines int) {
	for range lines {
		now := time.Now()
		_, err := fmt.Fprintf(l.file, "%s%d.%03d 200 0.000\n", l.prefix, now.Unix(), now.Nanosecond()/1e6)
		l.do(err)
		l.lines++
		time.Sleep(5 * time.Millisecond)
	}
}

// TestRotationMatrix rotates logs twice in each way while their follower runs, is stopped, or was killed. All written
// lines are counted, once.
func TestRotationMatrix(t *testing.T) {
	t.Parallel()
	binary := buildWindowstat(t)
	var wait sync.WaitGroup
	var mu sync.Mutex
	matrix := map[string]string{}
	states := []string{"running", "stopped", "killed"}
	for _, way := range rotationWays {
		for _, state := range states {
			dir, pages := t.TempDir(), freeAddress(t)
			wait.Go(func() {
				counted, written, err := rotateWhile(t, binary, dir, pages, way.begin, state)
				mu.Lock()
				defer mu.Unlock()
				matrix[way.name+state] = fmt.Sprintf("%d/%d", counted, written)
				if counted != written || err != nil {
					t.Errorf("%s, %s: %d of %d lines counted: %v", way.name, state, counted, written, err)
				}
			})
		}
	}
	wait.Wait()
	t.Logf("%-30s%12s%12s%12s", "lines counted of lines written", states[0], states[1], states[2])
	for _, way := range rotationWays {
		t.Logf("%-30s%12s%12s%12s", way.name, matrix[way.name+states[0]],
			matrix[way.name+states[1]], matrix[way.name+states[2]])
	}
}

func rotateWhile(t *testing.T, binary, dir, pages string, begin func(*rotating) (string, func()),
	state string,
) (counted, written int, err error) {
	l := &rotating{dir: dir, open: filepath.Join(dir, "access.log")}
	follow, rotate := begin(l)
	logs, old := filepath.Join(dir, "log"), filepath.Join(dir, "old")
	l.do(os.MkdirAll(old, 0o755))
	l.reopen()
	var printed bytes.Buffer
	start := func() *exec.Cmd {
		c := exec.CommandContext(t.Context(), binary, "replay", "--follow",
			"--nginx-format=$msec $status $request_time", "--tolerance=1s",
			"--rotated-dir="+old, "--metric-log.dir="+logs, "--web.listen-address="+pages, follow)
		c.Stdout, c.Stderr = &printed, &printed
		l.do(c.Start())
		return c
	}
	process := start()
	deadline := time.Now().Add(2 * catchUp)
	for ready := saysReady(pages); ; time.Sleep(20 * time.Millisecond) { // the follower begins at the end
		if err := ready(); err == nil {
			break
		} else if time.Now().After(deadline) {
			l.do(err)
			break
		}
	}
	for !begun(logs) && time.Now().Before(deadline) {
		l.serve(100)
	}
	passed := func() (n int) {
		for _, row := range rowsIn(t, logs) {
			if row.Resource == collector.InboundTotal {
				n += int(row.Pass)
			}
		}
		return n
	}
	await := func(lines int) {
		for deadline := time.Now().Add(catchUp); passed() < lines && time.Now().Before(deadline); {
			time.Sleep(100 * time.Millisecond)
		}
	}
	switch state {
	case "stopped":
		l.do(process.Process.Signal(syscall.SIGTERM), process.Wait())
	case "killed":
		l.do(process.Process.Kill())
		_ = process.Wait()
	}
	l.serve(150)
	before := l.lines
	rotate()
	l.serve(300)
	if state == "running" { // a stopped one misses short-lived files
		await(before + 1)
	}
	rotate()
	l.serve(150)
	if state != "running" {
		process = start()
	}
	l.serve(300)
	await(l.lines)
	l.do(process.Process.Signal(syscall.SIGTERM), process.Wait())
	err = errors.Join(append(l.errs, l.file.Close())...)
	counted = passed()
	if counted != l.lines {
		err = errors.Join(err, errors.New(printed.String()))
	}
	return counted, l.lines, err
}

// begun reports whether a metric log has rows. A follower continues after them.
func begun(logs string) bool {
	files, _ := filepath.Glob(filepath.Join(logs, "*.log.*"))
	return slices.ContainsFunc(files, func(f string) bool {
		at, err := os.Stat(f)
		return err == nil && at.Size() > 0
	})
}
