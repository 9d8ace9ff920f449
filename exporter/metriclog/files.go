package metriclog

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/filelock"
)

// files are the files of one log: the data file that is written now, its index, and older ones.
//
// Nothing is taken for granted to be as it was left. Before each write ready looks whether lock, data file and index are still
// those that are open. If one is not, because a write failed, or it was deleted, moved, truncated or had by another process, the log is
// resumed from the disk, as at the start of a process: it is locked, its newest file is repaired, and its last second is read.
//
// Seconds are added to a buffer, and several of one date are written together: their rows in one write, and then their index
// records. If that fails, both files are truncated to the sizes that they had.
type files struct {
	Options
	log string // prefix of the files' names

	lock          *filelock.File // nil while closed
	last          int64          // Unix time of the last second in the log; 0 if there is none
	current       segment
	data, idx     *os.File // nil while closed
	size, idxSize int64    // in bytes
	rows          []byte   // added, and not written
	records       []byte   // of the index, for each second of these rows
	added         int64    // Unix time of the last of these seconds
	synced        int64    // Unix time of the last second that was synced
	retained      int64    // Unix time of the second at which old files were last deleted
}

// path is where a file of the log is.
func (f *files) path(s segment) string { return filepath.Join(f.Dir, s.name()) }

// list returns the log's files, oldest first.
func (f *files) list() ([]segment, error) {
	return segments(f.Dir, func(s segment) bool { return s.log == f.log })
}

// flushSize is how many bytes of rows are enough for one write.
const flushSize = 256 << 10

// errLate is the error for a second that is not after the last one.
var errLate = errors.New("the log has later seconds")

// end is the last second that was written or added.
func (f *files) end() int64 { return max(f.last, f.added) }

// append adds the rows of a second, each with the head that appendHead makes, to those that flush writes. Before that it writes those
// if the second is of another date, or if they are enough. Seconds must ascend, or the error is errLate.
func (f *files) append(start time.Time, rows []byte) error {
	second := start.Unix()
	_, date, _ := bytes.Cut(rows, []byte("|"))
	if !bytes.HasPrefix(date, []byte(f.current.date+" ")) || len(f.rows) >= flushSize || f.full() {
		if err := f.flush(); err != nil {
			return err
		}
	}
	first := len(f.records) == 0
	// Before the first second of a write it is seen to that the files are those that were left.
	if first {
		if err := f.ready(); err != nil {
			return err
		}
	}
	if second <= f.end() {
		return errLate
	}
	if first {
		if err := f.roll(start); err != nil {
			return err
		}
	}
	f.records = appendRecord(f.records, second, f.size+int64(len(f.rows)))
	f.rows = append(f.rows, rows...)
	f.added = second
	return nil
}

// flush writes what was added. After an error it is gone, and may be added again.
func (f *files) flush() error {
	if len(f.records) == 0 {
		return nil
	}
	// Rows come before the index, so that it never points behind the end of the file. They are written at their offset and not appended: a
	// write that has failed halfway is written over by the next one even if the file could not be truncated.
	_, err := f.data.WriteAt(f.rows, f.size)
	if err == nil {
		_, err = f.idx.WriteAt(f.records, f.idxSize)
	}
	if err == nil && f.Sync > 0 && f.added-f.synced >= int64(f.Sync/time.Second) {
		if err = f.fsync(); err == nil {
			f.synced = f.added
		}
	}
	if err != nil {
		err = errors.Join(err, f.truncate(), f.closeSegment())
	} else {
		f.size, f.idxSize, f.last = f.size+int64(len(f.rows)), f.idxSize+int64(len(f.records)), f.added
	}
	f.rows, f.records, f.added = f.rows[:0], f.records[:0], 0
	return err
}

// truncate cuts both files to the sizes that are known to be complete.
func (f *files) truncate() error {
	return errors.Join(f.data.Truncate(f.size), f.idx.Truncate(f.idxSize))
}

// fsync syncs both files to disk.
func (f *files) fsync() error {
	return errors.Join(f.data.Sync(), f.idx.Sync())
}

// roll opens the file for a second: the current one, or the next if that is full or of another date.
func (f *files) roll(start time.Time) error {
	date, second := start.Format(time.DateOnly), start.Unix()
	if f.current.date == date && !f.full() {
		f.retain(second, false)
		return nil
	}
	if err := f.closeSegment(); err != nil {
		return err
	}
	next := segment{log: f.log, date: date, first: second}
	// The number of the next file is that of the current one and one more, or the first that is free: a directory of years is not listed
	// for it.
	if f.current.date == date {
		next.n = f.current.n + 1
	}
	// It is taken if the time zone was changed on this day. An empty one, as a full disk leaves it, is used.
	for at, err := os.Stat(f.path(next)); err == nil && at.Mode().IsRegular() && at.Size() > 0; at, err = os.Stat(f.path(next)) {
		next.n++
	}
	f.current = next
	f.retain(second, true)
	return f.open()
}

// full reports whether the next file begins behind what was added.
func (f *files) full() bool { return f.size+int64(len(f.rows)) >= f.MaxFileSize }

// close closes the files and releases the lock.
func (f *files) close() error {
	err := f.closeSegment()
	if f.lock != nil {
		err = errors.Join(err, f.lock.Close())
		f.lock = nil
	}
	return err
}

// closeSegment closes the current file and its index.
func (f *files) closeSegment() error {
	if f.data == nil {
		return nil
	}
	var err error
	if f.Sync > 0 {
		err = f.fsync()
	}
	err = errors.Join(err, f.data.Close(), f.idx.Close())
	f.data, f.idx = nil, nil
	return err
}

// retainInterval is how often, in seconds, old files are deleted when no new file is started.
const retainInterval = 60

// retain deletes files until the limits of the options hold, the oldest first, but never the current one. Readers that have a file open
// keep it. Failures are ignored: they must not stop the log, and the next call tries again.
func (f *files) retain(now int64, newFile bool) {
	if f.MaxFiles == 0 && f.MaxBytes == 0 && f.MaxAge == 0 || !newFile && now-f.retained < retainInterval {
		return
	}
	f.retained = now
	// The disk says what there is. A count that is kept in memory would miss what somebody deletes or copies.
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
		tooMany := f.MaxFiles > 0 && count > f.MaxFiles
		tooMuch := f.MaxBytes > 0 && total > f.MaxBytes
		day, _ := s.span()
		tooOld := f.MaxAge > 0 && s.err == nil && now-max(day, s.first, s.last) > int64(f.MaxAge/time.Second)
		if !tooMany && !tooMuch && !tooOld {
			continue
		}
		bytes := f.bytes(s)
		// The index goes first: a data file without one is read in full, an index without its file is read by nobody and stays for ever.
		_ = os.Remove(f.path(s) + idxSuffix)
		if os.Remove(f.path(s)) == nil {
			count--
			total -= bytes
		}
	}
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
