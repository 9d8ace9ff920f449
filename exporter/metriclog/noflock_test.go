package metriclog

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/filelock"
)

// Without flock a log is written as elsewhere, but retention deletes its own files only: other processes may be running.
func TestFileSystemWithoutLocks(t *testing.T) {
	defer func() { lockFile = filelock.Lock }()
	lockFile = func(path string) (file *os.File, sure bool, err error) {
		file, _, err = filelock.Lock(path)
		return file, false, err
	}
	dir := t.TempDir()
	other := filepath.Join(dir, "shop-metrics.log.pid999999.2025-01-01")
	if err := os.WriteFile(other, []byte("1735689600000|x|a|1|1|1|1|1|1|1|0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := newProcess(t, dir, "shop", 12, 100, time.UTC)
	p.keep = retention{files: 2}
	for n := range int64(5) {
		if err := p.second(start.Unix()+n, "a"); err != nil {
			t.Fatal(err)
		}
	}
	if all, err := p.list(); err != nil || len(all) != 2 {
		t.Errorf("%d files, %v; want 2", len(all), err)
	}
	if _, err := os.Stat(other); err != nil {
		t.Errorf("the file of a process that may be alive: %v", err)
	}
	if err := p.close(); err != nil {
		t.Error(err)
	}
}
