package metriclog

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/windowstat/windowstat/exporter/internal/filelock"
)

// One process at a time writes a log: the one that has locked its lock file. Where the system has no such locks, nothing keeps two from
// writing.

func (f *files) lockPath() string { return filepath.Join(f.dir, f.log) + lockSuffix }

// lockFile is replaced in tests.
var lockFile = filelock.Lock

// errLocked is the error for a log that another process writes.
var errLocked = errors.New("another process writes this log; give each an App or a directory of its own")

// acquire locks the log, if it is not locked.
func (f *files) acquire() error {
	if f.lock != nil && same(f.lockPath(), f.lock) {
		return nil
	}
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return err
	}
	lock, _, err := lockFile(f.lockPath())
	if errors.Is(err, filelock.ErrHeld) {
		return fmt.Errorf("%s: %w", f.lockPath(), errLocked)
	}
	if err != nil {
		return err
	}
	if f.lock != nil {
		_ = f.lock.Close() // its file was deleted
	}
	f.lock = lock
	return nil
}
