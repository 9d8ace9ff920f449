package limitfile_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/collector/limitfile"
)

// running holds a Collector, the limits file of a Watcher, and the log of this Watcher. The method Run of the Watcher
// runs until stop is called. Run checks the file every second. Each test begins half a second after a check, and sleeps
// for whole seconds, so it never changes the file at the time of a check.
type running struct {
	c    *collector.Collector
	path string
	log  *buffer
	stop func()
}

// run writes text to the file path, and starts a Watcher of the file. The test must call run in a synctest bubble.
func run(t *testing.T, path, text string) *running {
	t.Helper()
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r := &running{c: c, path: path, log: new(buffer)}
	r.write(t, text)
	w, err := limitfile.Watch(c, path, slog.New(slog.NewTextHandler(r.log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- w.Run(ctx) }()
	r.stop = func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	time.Sleep(500 * time.Millisecond)
	return r
}

// write overwrites the file with text. An editor that does not replace files does the same.
func (r *running) write(t *testing.T, text string) {
	t.Helper()
	if err := os.WriteFile(r.path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// wantLimit checks that the Collector has exactly one limit, with this count.
func (r *running) wantLimit(t *testing.T, when string, count int64) {
	t.Helper()
	if got := r.c.Limits(); len(got) != 1 || got[0].Count != count {
		t.Errorf("%s: limits %v, want a count of %d\n%s", when, got, count, r.log)
	}
}

// Run loads a changed file only when it has stayed the same for a second, so it ignores files that are partly written.
func TestRunIgnoresPartlyWrittenFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yml")
	synctest.Test(t, func(t *testing.T) {
		r := run(t, path, "limits: [{resource: a, qps: 1}]")
		defer r.stop()
		r.write(t, "limits: [{resource: a, q")
		time.Sleep(time.Second)
		r.write(t, "limits: [{resource: a, qps: 20}]")
		time.Sleep(time.Second)
		r.wantLimit(t, "after one tick", 1)
		time.Sleep(time.Second)
		r.wantLimit(t, "after two ticks", 20)
		if strings.Contains(r.log.String(), "cannot reload") {
			t.Error(r.log)
		}
	})
}

// Run loads a changed file even if the size of the file stays the same.
func TestRunSeesChangesOfTheSameSize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yml")
	synctest.Test(t, func(t *testing.T) {
		r := run(t, path, "limits: [{resource: a, qps: 1}]")
		defer r.stop()
		r.write(t, "limits: [{resource: a, qps: 2}]")
		later := time.Now().Add(time.Hour)
		if err := os.Chtimes(path, later, later); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		r.wantLimit(t, "after two ticks", 2)
	})
}

// If the file is removed, Run logs this once, and changes no limit.
func TestRunLogsARemovalOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yml")
	synctest.Test(t, func(t *testing.T) {
		r := run(t, path, "limits: [{resource: a, qps: 1}]")
		defer r.stop()
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		r.wantLimit(t, "after the removal", 1)
		if n := strings.Count(r.log.String(), "was removed"); n != 1 {
			t.Errorf("%d messages about the removal, want 1\n%s", n, r.log)
		}
	})
}

// Run logs limits that match no resource once, a minute after the file was loaded.
func TestRunWarnsOnceAboutLimitsWithoutResource(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yml")
	synctest.Test(t, func(t *testing.T) {
		r := run(t, path, "limits: [{resource: /misspeled/*, qps: 1}]")
		defer r.stop()
		for _, step := range []struct {
			sleep time.Duration
			want  int
		}{{58 * time.Second, 0}, {3 * time.Second, 1}, {5 * time.Minute, 1}} {
			time.Sleep(step.sleep)
			if n := strings.Count(r.log.String(), "match no resource"); n != step.want {
				t.Errorf("after another %v: %d warnings, want %d\n%s", step.sleep, n, step.want, r.log)
			}
		}
	})
}

// A file of exactly the maximum size is valid.
func TestReadMaximumSize(t *testing.T) {
	path := filepath.Join(t.TempDir(), "limits.yml")
	text := "limits: []\n#"
	text += strings.Repeat("x", 1<<20-len(text))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if limits, err := limitfile.Read(path); err != nil || len(limits) != 0 {
		t.Error(limits, err)
	}
}
