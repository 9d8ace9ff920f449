package metriclog

import (
	"os"
	"path/filepath"
	"time"
)

// retention says which files are kept; 0 is no limit.
type retention struct {
	files int           // of an application
	bytes int64         // with indexes
	age   time.Duration // of a file's last second
}

// lookEvery is how often it is looked for files to delete, in seconds, if none is begun.
const lookEvery = 60

// retain deletes the oldest files until what is left is allowed. The current file stays, whatever it is. The files of
// processes that are gone are treated as the log's own. What cannot be deleted must not stop the log; it is tried again.
func (f *files) retain(now int64, begun bool) {
	if f.keep == (retention{}) || !begun && (f.keep.age == 0 && f.keep.bytes == 0 || now-f.looked < lookEvery) {
		return
	}
	f.looked = now
	gone := f.gone()
	defer func() {
		for log, lock := range gone {
			f.release(log, lock)
		}
	}()
	all, err := segments(f.dir, f.kind, func(log string) bool { return log == f.log || gone[log] != nil })
	if err != nil {
		return
	}
	count, total := len(all), int64(0)
	for _, s := range all {
		total += f.bytes(s)
	}
	if begun {
		count++ // the current file, which is not there yet
	}
	for _, s := range all {
		if s.name() == f.current.name() {
			continue
		}
		tooMany := f.keep.files > 0 && count > f.keep.files
		tooMuch := f.keep.bytes > 0 && total > f.keep.bytes
		if !tooMany && !tooMuch && !f.tooOld(s, now) {
			continue
		}
		bytes := f.bytes(s)
		_ = os.Remove(f.path(s) + idxSuffix)
		if os.Remove(f.path(s)) == nil {
			count--
			total -= bytes
		}
	}
}

// tooOld reports whether a file's last second is older than is kept.
func (f *files) tooOld(s segment, now int64) bool {
	if f.keep.age == 0 {
		return false
	}
	ended, err := f.last([]segment{s})
	return err == nil && now-max(ended, s.first) > int64(f.keep.age/time.Second)
}

// gone finds the logs of the application's other processes that are not alive, and takes them.
func (f *files) gone() map[string]*os.File {
	app, _ := parseLogName(f.log, f.kind)
	gone := map[string]*os.File{}
	_, _ = named(f.dir, f.kind, func(log string) bool {
		other, pid := parseLogName(log, f.kind)
		if other == app && pid != 0 && log != f.log && gone[log] == nil {
			lock, sure, err := lockFile(filepath.Join(f.dir, log) + lockSuffix)
			switch {
			case sure:
				gone[log] = lock
			case err == nil:
				_ = lock.Close()
			}
		}
		return false
	})
	return gone
}

// release gives back the log of a process that is gone, and leaves nothing of it if it has no files any more.
func (f *files) release(log string, lock *os.File) {
	rest, err := named(f.dir, f.kind, func(other string) bool { return other == log })
	if err == nil && len(rest) == 0 {
		_ = os.Remove(lock.Name())
	}
	_ = lock.Close()
}

// bytes is the size of a file and its index.
func (f *files) bytes(s segment) (sum int64) {
	for _, path := range []string{f.path(s), f.path(s) + idxSuffix} {
		if info, err := os.Stat(path); err == nil {
			sum += info.Size()
		}
	}
	return sum
}
