package metriclog

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/windowstat/windowstat/exporter/internal/filelock"
)

// files manages the files of one log: the current segment, its index, the lock file, and older segments.
//
//	state   lock  segment  next state
//	-----   ----  -------  ----------
//	closed  no    closed   open, by ensureOpen; empty, if the log has no segment
//	empty   yes   closed   open, when rotate starts the first segment
//	open    yes   open     broken, after a failed write; closed, by close
//	broken  yes   closed   open, by ensureOpen
//
// append buffers the rows of a second. flush writes the buffered seconds: first their rows in one write, then their
// index records. All buffered seconds belong to the current segment. If a write fails, flush truncates both files to
// their previous sizes and drops the buffer.
//
// Before the first second of each write, ensureOpen compares the lock file, the segment and the index on disk with the
// open files. If a write failed, or if a file was deleted, moved, truncated or taken by another process, ensureOpen
// opens the log again as at the start of a process. See reopen.
type files struct {
	Options
	log string // prefix of the file names, as in segment

	lock          *filelock.File // nil while the log is not locked
	last          int64          // Unix time of the last second in the log; 0 if the log is empty
	current       segment
	data, idx     *os.File // current segment and its index; nil while closed
	size, idxSize int64    // their sizes in bytes, without buffered seconds
	bufferedRows  []byte
	bufferedIndex []byte // an index record for each buffered second
	lastBuffered  int64  // Unix time of the last buffered second; 0 if none is buffered
	lastSynced    int64  // Unix time of the last second that was synced to disk
	lastRetention int64  // Unix time of the second in which applyRetention last ran
}

// path returns the path of a segment.
func (f *files) path(s segment) string { return filepath.Join(f.Dir, s.name()) }

// list returns the segments of the log, oldest first.
func (f *files) list() ([]segment, error) {
	return segments(f.Dir, func(s segment) bool { return s.log == f.log })
}

// flushSize is the size in bytes at which append writes the buffered rows.
const flushSize = 256 << 10

// errOutOfOrder is the error for a second that is not later than the last one.
var errOutOfOrder = errors.New("the log has later seconds")

// newest returns the Unix time of the last second, buffered or written.
func (f *files) newest() int64 { return max(f.last, f.lastBuffered) }

// append buffers the rows of a second; each row must start with the result of appendHead. It first flushes the buffered
// seconds if the new one belongs to another date, if they have flushSize bytes, or if the segment is full. If the
// second is not later than all others, append returns errOutOfOrder.
func (f *files) append(start time.Time, rows []byte) error {
	second := start.Unix()
	_, date, _ := bytes.Cut(rows, []byte("|"))
	if !bytes.HasPrefix(date, []byte(f.current.date+" ")) || len(f.bufferedRows) >= flushSize || f.full() {
		if err := f.flush(); err != nil {
			return err
		}
	}
	first := len(f.bufferedIndex) == 0
	// The first second of a write checks the files on disk.
	if first {
		if err := f.ensureOpen(); err != nil {
			return err
		}
	}
	if second <= f.newest() {
		return errOutOfOrder
	}
	if first {
		if err := f.rotate(start); err != nil {
			return err
		}
	}
	f.bufferedIndex = appendRecord(f.bufferedIndex, second, f.size+int64(len(f.bufferedRows)))
	f.bufferedRows = append(f.bufferedRows, rows...)
	f.lastBuffered = second
	return nil
}

// flush writes the buffered seconds. After an error they are no longer buffered; the caller may append them again.
func (f *files) flush() error {
	if len(f.bufferedIndex) == 0 {
		return nil
	}
	// Write the rows before the index, so the index never points past the end of the segment. Write at the known offset
	// instead of appending: even if truncate fails after an incomplete write, the next write replaces its bytes.
	_, err := f.data.WriteAt(f.bufferedRows, f.size)
	if err == nil {
		_, err = f.idx.WriteAt(f.bufferedIndex, f.idxSize)
	}
	if err == nil && f.Sync > 0 && f.lastBuffered-f.lastSynced >= int64(f.Sync/time.Second) {
		if err = f.fsync(); err == nil {
			f.lastSynced = f.lastBuffered
		}
	}
	if err != nil {
		err = errors.Join(err, f.truncate(), f.closeSegment())
	} else {
		f.size += int64(len(f.bufferedRows))
		f.idxSize += int64(len(f.bufferedIndex))
		f.last = f.lastBuffered
	}
	f.bufferedRows, f.bufferedIndex, f.lastBuffered = f.bufferedRows[:0], f.bufferedIndex[:0], 0
	return err
}

// truncate cuts the segment and the index to f.size and f.idxSize, which cover complete seconds only.
func (f *files) truncate() error {
	return errors.Join(f.data.Truncate(f.size), f.idx.Truncate(f.idxSize))
}

// fsync syncs the segment and the index to disk.
func (f *files) fsync() error {
	return errors.Join(f.data.Sync(), f.idx.Sync())
}

// rotate makes the segment for a second current. It keeps the current segment, unless this one is full or of another
// date.
func (f *files) rotate(start time.Time) error {
	date, second := start.Format(time.DateOnly), start.Unix()
	if f.current.date == date && !f.full() {
		f.applyRetention(second, false)
		return nil
	}
	if err := f.closeSegment(); err != nil {
		return err
	}
	next := segment{log: f.log, date: date, first: second}
	// Count from the current segment instead of listing a directory that may have files of years.
	if f.current.date == date {
		next.n = f.current.n + 1
	}
	// The name may exist if the time zone was changed on this day. A full disk can leave an empty file; use it.
	for f.hasRows(next) {
		next.n++
	}
	f.current = next
	f.applyRetention(second, true)
	return f.open()
}

// hasRows reports whether the segment exists as a regular file that is not empty.
func (f *files) hasRows(s segment) bool {
	info, err := os.Stat(f.path(s))
	return err == nil && info.Mode().IsRegular() && info.Size() > 0
}

// full reports whether the current segment has reached MaxFileSize, buffered rows included.
func (f *files) full() bool { return f.size+int64(len(f.bufferedRows)) >= f.MaxFileSize }

// close closes the files and releases the lock.
func (f *files) close() error {
	err := f.closeSegment()
	if f.lock != nil {
		err = errors.Join(err, f.lock.Close())
		f.lock = nil
	}
	return err
}

// closeSegment closes the current segment and its index. With Sync, it syncs both first.
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

// retentionInterval is the time in seconds between two runs of retention in which no new segment is started.
const retentionInterval = 60

// applyRetention deletes the oldest segments until all limits of the options hold. It never deletes the current
// segment. Readers keep the files that they have open. It ignores errors, because they must not stop the log; the next
// call tries again. With newFile, f.current does not exist yet and counts as a further file.
func (f *files) applyRetention(now int64, newFile bool) {
	if f.MaxFiles == 0 && f.MaxBytes == 0 && f.MaxAge == 0 || !newFile && now-f.lastRetention < retentionInterval {
		return
	}
	f.lastRetention = now
	// List the directory. A count in memory would miss files that other programs delete or copy.
	all, err := f.list()
	if err != nil {
		return
	}
	count, total := len(all), int64(0)
	for _, s := range all {
		total += f.bytes(s)
	}
	if newFile {
		count++ // the current segment, which does not exist yet
	}
	for _, s := range all {
		if s.name() == f.current.name() {
			continue
		}
		// Each limit is a promise of its own, so exceeding one of them is enough. A segment without a readable second
		// has the age of its date.
		tooMany := f.MaxFiles > 0 && count > f.MaxFiles
		tooMuch := f.MaxBytes > 0 && total > f.MaxBytes
		day, _ := s.span()
		tooOld := f.MaxAge > 0 && s.err == nil && now-max(day, s.first, s.last) > int64(f.MaxAge/time.Second)
		if !tooMany && !tooMuch && !tooOld {
			continue
		}
		bytes := f.bytes(s)
		// Remove the index first. Searches read a segment without an index in full, but nothing would ever remove an
		// index without a segment.
		_ = os.Remove(f.path(s) + idxSuffix)
		if os.Remove(f.path(s)) == nil {
			count--
			total -= bytes
		}
	}
}

// bytes returns the size of a segment and its index.
func (f *files) bytes(s segment) (sum int64) {
	for _, path := range []string{f.path(s), f.path(s) + idxSuffix} {
		if info, err := os.Stat(path); err == nil {
			sum += info.Size()
		}
	}
	return sum
}
