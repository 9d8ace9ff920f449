//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package metriclog

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Without flock a log is written as elsewhere, but retention deletes its own files only: other processes may be running.
func TestFileSystemWithoutLocks(t *testing.T) {
	defer func() { flock = unix.Flock }()
	for _, errno := range []error{unix.ENOLCK, unix.EOPNOTSUPP, unix.ENOSYS} {
		flock = func(int, int) error { return errno }
		dir := t.TempDir()
		other := filepath.Join(dir, "shop-metrics.log.pid999999.2025-01-01")
		if err := os.WriteFile(other, []byte("1735689600000|x|a|1|1|1|1|1|1|1|0\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		p := newProcess(t, dir, "shop", 12, 100, time.UTC)
		p.keep = retention{files: 2}
		for n := range int64(5) {
			if err := p.second(start.Unix()+n, "a"); err != nil {
				t.Fatalf("%v: %v", errno, err)
			}
		}
		if all, err := p.list(); err != nil || len(all) != 2 {
			t.Errorf("%v: %d files, %v; want 2", errno, len(all), err)
		}
		if _, err := os.Stat(other); err != nil {
			t.Errorf("%v: the file of a process that may be alive: %v", errno, err)
		}
		if err := p.close(); err != nil {
			t.Error(err)
		}
	}
}
