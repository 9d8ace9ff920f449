package metriclog

import (
	"os"
	"time"
)

// retention limits the files that are kept; 0 is no limit. The oldest file goes first, with its index, whichever limit it is over.
// Readers that have it open keep it.
type retention struct {
	files int
	bytes int64         // with indexes
	age   time.Duration // of a file's last second
}

// retainInterval is how often, in seconds, old files are deleted when no new file is started.
const retainInterval = 60

// retain deletes the oldest files until the limits hold, but never the current one. Failures are ignored: they must not stop the log, and the next call tries again.
func (f *files) retain(now int64, newFile bool) {
	if f.keep == (retention{}) || !newFile && (f.keep.age == 0 && f.keep.bytes == 0 || now-f.retained < retainInterval) {
		return
	}
	f.retained = now
	all, err := f.list()
	if err != nil {
		return
	}
	count, total := len(all), int64(0)
	for _, s := range all {
		total += f.bytes(s)
	}
	if newFile {
		count++ // the current file, which is not made yet
	}
	for _, s := range all {
		if s.name() == f.current.name() {
			continue
		}
		// Any limit is enough: they are all promises.
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

// tooOld reports whether a file's last second is older than the limit.
func (f *files) tooOld(s segment, now int64) bool {
	if f.keep.age == 0 {
		return false
	}
	last, err := lastSecond(f.dir, s)
	return err == nil && now-max(last, s.first) > int64(f.keep.age/time.Second)
}

// bytes returns the size of a file and its index.
func (f *files) bytes(s segment) (sum int64) {
	for _, path := range []string{f.path(s), f.path(s) + idxSuffix} {
		if info, err := os.Stat(path); err == nil {
			sum += info.Size()
		}
	}
	return sum
}
