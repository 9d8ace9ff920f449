//go:build unix

package metriclog_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

var tmpfs = flag.Bool("tmpfs", false,
	"mount a small filesystem in TestFullFilesystem; requires root on Linux")

// checkOutage records 220 seconds. It calls begin after the tenth second, which must make writing fail, and end after
// the 210th second. It checks that no second is lost.
func checkOutage(t *testing.T, r *rig, begin, end func()) {
	t.Helper()
	second := func(n int) (failed int) {
		for range n {
			r.calls("a", 1, ms)
			r.now = r.now.Add(999 * ms)
			if r.Flush() != nil {
				failed++
			}
		}
		return failed
	}
	if failed := second(10); failed != 0 {
		t.Fatalf("%d Flushes failed before the outage:\n%s", failed, r.log.String())
	}
	begin()
	failed := second(200)
	if failed == 0 {
		t.Fatal("no Flush failed")
	}
	// Search returns an error while the directory is missing.
	if rows, err := (metriclog.Searcher{Dir: r.dir}).Search(metriclog.Query{}); err == nil {
		read := 0
		for range rows.All() {
			read++
		}
		if read%2 != 0 || rows.Malformed() != 0 || rows.Err() != nil {
			t.Errorf("during the outage: %d rows, %d malformed, %v", read, rows.Malformed(), rows.Err())
		}
	}
	end()
	if failed := second(10); failed != 0 {
		t.Fatalf("%d Flushes failed after the outage:\n%s", failed, r.log.String())
	}
	if rows, metrics := r.checkIndexes(t), r.metrics(); rows != 220 ||
		metrics["metriclog_errors_total"] != float64(failed) ||
		metrics["metriclog_lost_seconds_total"] != 0 ||
		metrics["metriclog_seconds_total"] != 220 {
		t.Errorf("%d rows, %d failed, %v", rows, failed, metrics)
	}
	if n := strings.Count(r.log.String(), "\n"); n != 2 {
		t.Errorf("%d log messages, want 2:\n%s", n, r.log.String())
	}
	if n := r.Resource("a").Snapshot(nil).Total.Pass; n != 220 {
		t.Errorf("the Collector has %d calls, want 220", n)
	}
}

// limited is the environment variable of a child process that may limit the size of its own files.
const limited = "WINDOWSTAT_LOG_LIMITED"

// limitFiles limits the size of files of this process to the current size of a file and 1,000 bytes. A write beyond the
// limit is cut, as on a full disk.
func limitFiles(t *testing.T, path string) (lift func()) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	limit := old
	limit.Cur = uint64(info.Size()) + 1000
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &old); err != nil {
			t.Fatal(err)
		}
	}
}

// A full filesystem loses no second: the log writes delayed seconds as soon as the filesystem has space. Until then,
// readers never see a part of a second.
func TestFullFilesystem(t *testing.T) {
	if !*tmpfs { // a limit for the size of files has the same effect, but on all files of the process
		if os.Getenv(limited) == "" {
			cmd := exec.Command(os.Args[0], "-test.run", "^TestFullFilesystem$")
			cmd.Env = append(os.Environ(), limited+"=1")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
			return
		}
		r := newRig(t, start, metriclog.Options{})
		var lift func()
		checkOutage(t, r, func() { lift = limitFiles(t, filepath.Join(r.dir, today)) }, func() { lift() })
		return
	}
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", dir).CombinedOutput(); err != nil {
		t.Fatalf("cannot mount a small filesystem (requires root, and not every container allows it): %v: %s",
			err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 44<<10), 0o644); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, start, metriclog.Options{Dir: dir, MaxFileSize: 1 << 20})
	t.Cleanup(func() { _ = r.Writer.Close() })
	checkOutage(t, r, func() {}, func() {
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
	})
}

// A directory that cannot be read or written loses no second. Root may write to any directory, so the test replaces the
// directory with a file.
func TestMissingDirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	r := newRig(t, start, metriclog.Options{Dir: dir})
	away := dir + ".away"
	checkOutage(t, r, func() {
		if err := os.Rename(dir, away); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}, func() {
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(away, dir); err != nil {
			t.Fatal(err)
		}
	})
}
