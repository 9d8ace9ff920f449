package metriclog

import (
	"os"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/filelock"
)

// Without flock a log is written as elsewhere.
func TestFileSystemWithoutLocks(t *testing.T) {
	defer func() { lockFile = filelock.Lock }()
	lockFile = func(path string) (file *os.File, sure bool, err error) {
		file, _, err = filelock.Lock(path)
		return file, false, err
	}
	dir := t.TempDir()
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
	if err := p.close(); err != nil {
		t.Error(err)
	}
}
