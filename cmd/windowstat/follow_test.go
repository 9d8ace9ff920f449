package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/metriclog"
)

// logging is a Collector with a metric log.
type logging struct {
	*collector.Collector
	*metriclog.Writer
}

// startLogging continues the log of an application.
func startLogging(t *testing.T, dir, app string) logging {
	t.Helper()
	// Small files: a new one begins every few seconds.
	o := metriclog.Options{
		Dir:         dir,
		App:         app,
		MaxFileSize: 400,
		MaxFiles:    1000,
		Location:    time.UTC,
		Logger:      slog.New(slog.DiscardHandler),
	}
	last, err := metriclog.Last(o)
	if err != nil {
		t.Fatal(err)
	}
	c, err := collector.New(collector.Options{After: last})
	if err != nil {
		t.Fatal(err)
	}
	w, err := metriclog.New(c, o)
	if err != nil {
		t.Fatal(err)
	}
	return logging{c, w}
}

// second counts n calls and logs them when the second is over.
func (l logging) second(t *testing.T, resource string, n int) {
	t.Helper()
	for range n {
		e := l.Resource(resource).Enter()
		e.Exit(nil)
	}
	time.Sleep(time.Second)
	if err := l.Flush(); err != nil {
		t.Fatal(err)
	}
}

// buffer is a bytes.Buffer for two goroutines.
type buffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

// following starts windowstat log --follow. end stops it and returns its status.
func following(t *testing.T, out io.Writer, stderr io.Writer, dir string) (end func() int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	status := make(chan int, 1)
	go func() {
		status <- run(ctx, []string{
			"windowstat", "log", "--dir", dir, "--follow", "--zone=UTC", "--format=csv",
			"--resource=~a.*",
		}, out, stderr)
	}()
	return func() int { cancel(); return <-status }
}

// log --follow prints the rows of all processes once, when they are logged, across new files and restarts. It reports
// malformed lines once.
func TestFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		time.Sleep(500 * time.Millisecond) // in the middle of a second
		shop := startLogging(t, dir, "shop")
		shop.second(t, "a-before", 9) // before log --follow starts
		now := time.Now().UTC()
		old := fmt.Sprintf("%d|%s|a|5|0|0|0|0|0|0|0\nnonsense\n", now.Truncate(time.Second).UnixMilli(),
			now.Format(time.DateTime))
		if err := os.WriteFile(filepath.Join(dir, "old-metrics.log."+now.Format(time.DateOnly)), []byte(old),
			0o600); err != nil {
			t.Fatal(err)
		}
		var out, stderr buffer
		end := following(t, &out, &stderr, dir)
		want := []string{"old,a,5"}
		expect := func(app, resource string, n int) {
			want = append(want, fmt.Sprintf("%s,%s,%d", app, resource, n))
		}
		for i := range 20 {
			shop.second(t, "a", i+1)
			expect("shop", "a", i+1)
			if i == 5 { // another application
				till := startLogging(t, dir, "till")
				till.second(t, "ab", 7)
				expect("till", "ab", 7)
				_ = till.Close()
			}
			if i == 10 { // a restart, and a malformed line
				_ = shop.Close()
				time.Sleep(3 * time.Second)
				shop = startLogging(t, dir, "shop")
				now := time.Now().UTC()
				other := fmt.Sprintf("%d|%s|a|100|0|0|0|0|0|0|0\n", now.Truncate(time.Second).UnixMilli(),
					now.Format(time.DateTime))
				if err := os.WriteFile(filepath.Join(dir, "shop-metrics.log.pid7."+now.Format(time.DateOnly)),
					[]byte(other), 0o600); err != nil {
					t.Fatal(err)
				}
				expect("shop", "a", 100)
			}
		}
		time.Sleep(time.Second)
		if status := end(); status != 0 {
			t.Errorf("status %d", status)
		}
		_ = shop.Close()
		var got []string
		for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n")[1:] {
			f := strings.Split(line, ",")
			got = append(got, f[1]+","+f[3]+","+f[4])
		}
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s\nwant\n%s\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"), stderr.String())
		}
		if message := stderr.String(); strings.Count(message, "\n") != 1 ||
			!strings.Contains(message, "out of order: 1\n") {
			t.Errorf("message:\n%s", message)
		}
		files, err := filepath.Glob(filepath.Join(dir, "shop-metrics.log.*.idx"))
		if err != nil || len(files) < 5 {
			t.Errorf("%d files: %v", len(files), err)
		}
	})
}

// An unreadable index is reported once, and causes no missing rows.
func TestFollowPastAnUnreadableIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		name := filepath.Join(dir, "shop-metrics.log."+time.Now().UTC().Format(time.DateOnly))
		var out, stderr buffer
		end := following(t, &out, &stderr, dir)
		for i := range 4 {
			time.Sleep(time.Second)
			if i == 1 {
				// A loop of links, which cannot be opened.
				if err := os.Symlink(filepath.Base(name)+".1.idx", name+".1.idx"); err != nil {
					t.Skip(err)
				}
			}
			file := name
			if i > 0 {
				file += fmt.Sprintf(".%d", i)
			}
			line := fmt.Sprintf("%d|any date|a|%d|0|0|0|0|0|0|0\n", time.Now().Truncate(time.Second).UnixMilli(), i)
			if err := os.WriteFile(file, []byte(line), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if status := end(); status != 0 {
			t.Errorf("status %d", status)
		}
		var got []string
		for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n")[1:] {
			got = append(got, strings.Split(line, ",")[4])
		}
		if !slices.Equal(got, []string{"0", "1", "2", "3"}) {
			t.Errorf("rows %q", got)
		}
		if message := stderr.String(); strings.Count(message, "\n") != 1 || !strings.Contains(message, ".1.idx: ") {
			t.Errorf("message:\n%s", message)
		}
	})
}

// A directory that disappears and returns is reported once.
func TestFollowARemovedDirectory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "log")
		time.Sleep(500 * time.Millisecond)
		shop := startLogging(t, dir, "shop")
		var out, stderr buffer
		end := following(t, &out, &stderr, dir)
		shop.second(t, "a", 1)
		time.Sleep(time.Second)
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		shop.second(t, "a", 2)
		time.Sleep(time.Second)
		if status := end(); status != 0 {
			t.Errorf("status %d", status)
		}
		_ = shop.Close()
		if n := strings.Count(out.String(), ",shop,,a,"); n != 2 {
			t.Errorf("%d rows:\n%s", n, out.String())
		}
		if n := strings.Count(stderr.String(), "waiting for the directory"); n != 1 {
			t.Errorf("message %d times:\n%s", n, stderr.String())
		}
	})
}

// A log shipper that starts before the service waits for the log, and receives every row. It uses the command of the
// documentation.
func TestFollowBeforeTheFirstLog(t *testing.T) {
	page, err := os.ReadFile("../../docs/log.md")
	if err != nil {
		t.Fatal(err)
	}
	_, args, _ := strings.Cut(string(page), "command: [windowstat, ")
	args, _, _ = strings.Cut(args, "]\n")
	synctest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "log")
		time.Sleep(500 * time.Millisecond)
		ctx, cancel := context.WithCancel(t.Context())
		var out, stderr buffer
		status := make(chan int, 1)
		go func() {
			args := strings.Split(strings.ReplaceAll(args, "/var/log/shop", dir), ", ")
			status <- run(ctx, append([]string{"windowstat"}, args...), &out, &stderr)
		}()
		time.Sleep(3 * time.Second)
		shop := startLogging(t, dir, "shop")
		shop.second(t, "a", 1)
		shop.second(t, "a", 2)
		time.Sleep(time.Second)
		cancel()
		if got := <-status; got != 0 {
			t.Errorf("status %d", got)
		}
		_ = shop.Close()
		var got []string
		for line := range strings.Lines(out.String()) {
			var row struct {
				App, Resource  string
				Pass, Complete int
			}
			if err := json.Unmarshal([]byte(line), &row); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			got = append(got, fmt.Sprint(row))
		}
		if want := []string{
			"{shop a 1 1}", "{shop __total_inbound_traffic__ 0 0}", "{shop a 2 2}",
			"{shop __total_inbound_traffic__ 0 0}",
		}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if message := stderr.String(); strings.Count(message, "\n") != 1 ||
			!strings.Contains(message, "waiting for the directory "+dir) {
			t.Errorf("message:\n%s", message)
		}
	})
}

// If the log does not exist, a message names the existing logs, because a name may be misspelled.
func TestFollowAnAbsentLog(t *testing.T) {
	dir := aLog(t)
	for args, want := range map[string]string{
		"--app=shpo": "windowstat: waiting for a log; " + dir + " has logs of shop, till-v2.pid12, " +
			"till-v2.pid34\n",
		"--app=shop  --pid=12": "windowstat: waiting for a log; " + dir + " has logs of shop, till-v2.pid12, " +
			"till-v2.pid34\n",
		"--pid=12":     "",
		"--app=shop":   "",
		"--format=csv": "",
	} {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		var out, stderr strings.Builder
		status := run(ctx,
			append([]string{"windowstat", "log", "--follow", "--dir=" + dir}, strings.Split(args, "  ")...), &out,
			&stderr)
		if got := stderr.String(); status != 0 || !strings.HasPrefix(got, want) ||
			want == "" && strings.Contains(got, "waiting") {
			t.Errorf("%s: status %d, message %q, want %q", args, status, stderr.String(), want)
		}
	}
}

// closedPipe is an output whose reader has closed the pipe.
type closedPipe struct{}

func (closedPipe) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "|1", Err: syscall.EPIPE}
}

// A closed pipe ends the command without an error.
func TestFollowIntoAClosedPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		shop := startLogging(t, dir, "shop")
		var stderr buffer
		end := following(t, closedPipe{}, &stderr, dir)
		shop.second(t, "a", 1)
		time.Sleep(time.Second)
		if status := end(); status != 0 || stderr.String() != "" {
			t.Errorf("status %d: %s", status, stderr.String())
		}
		_ = shop.Close()
	})
}
