package metriclog

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// files are the files of one log: the data file that is written now, its index, and older ones.
type files struct {
	dir, log string
	maxSize  int64
	keep     retention
	sync     time.Duration // interval; 0 for never

	lock          *os.File       // nil while closed
	next          map[string]int // number of the next file, by day; nil if unknown
	current       segment
	data, idx     *os.File // nil while closed
	size, idxSize int64    // in bytes
	records       []byte   // a buffer
	synced        int64    // Unix time of the last second that was synced
	retained      int64    // Unix time of the second at which old files were last deleted
}

func (f *files) path(s segment) string { return filepath.Join(f.dir, s.name()) }

// list returns the log's files, oldest first.
func (f *files) list() ([]segment, error) {
	return segments(f.dir, func(log string) bool { return log == f.log })
}

// resume locks the log for this process, selects the newest file to append to, and returns the Unix time of the last second in
// the log; 0 if there is none.
func (f *files) resume() (last int64, err error) {
	if err := errors.Join(f.closeSegment(), f.acquire()); err != nil {
		return 0, err
	}
	f.current = segment{}
	all, err := f.list()
	if err != nil || len(all) == 0 {
		return 0, err
	}
	f.current = all[len(all)-1]
	if err := f.open(); err != nil {
		return 0, err
	}
	if err := f.closeSegment(); err != nil {
		return 0, err
	}
	return f.last(all)
}

// nextFor returns the number of a day's next file. No other process makes any while the log is locked.
func (f *files) nextFor(date string) (int, error) {
	if f.next == nil {
		all, err := segmentsByName(f.dir, func(log string) bool { return log == f.log })
		if err != nil {
			return 0, err
		}
		f.next = map[string]int{}
		for _, s := range all {
			f.next[s.date] = max(f.next[s.date], s.n+1)
		}
	}
	n := f.next[date]
	f.next[date] = n + 1
	return n, nil
}

// last returns the last second in the files; 0 if there is none. It is not always in the newest: a clock may have been set back.
func (f *files) last(all []segment) (last int64, err error) {
	for _, s := range slices.Backward(all) {
		if _, most := s.span(); most <= last {
			continue
		}
		second, err := lastSecond(f.dir, s)
		if err != nil && !errors.Is(err, os.ErrNotExist) { // another process deleted it
			return 0, err
		}
		last = max(last, second)
	}
	return last, nil
}

// flushSize is how many bytes of rows are enough for one write.
const flushSize = 256 << 10

// mark is the offset at which the rows of a second begin.
type mark struct{ second, offset int64 }

// appendAll writes the rows of several seconds of one date to the file for the first one, which begins at start.
func (f *files) appendAll(start time.Time, rows []byte, marks []mark) error {
	if err := f.acquire(); err != nil {
		return err
	}
	if err := f.roll(start); err != nil {
		return err
	}
	return f.append(rows, marks)
}

// append writes the rows of several seconds to the current file in one write, and then their index records, which make them
// valid: rows without a record are removed, at once or when the file is opened again.
func (f *files) append(rows []byte, marks []mark) error {
	records := f.records[:0]
	for _, m := range marks {
		records = appendRecord(records, m.second, f.size+m.offset)
	}
	f.records = records
	_, err := f.data.WriteAt(rows, f.size)
	if err == nil {
		_, err = f.idx.WriteAt(records, f.idxSize)
	}
	if last := marks[len(marks)-1].second; err == nil && f.sync > 0 && last-f.synced >= int64(f.sync/time.Second) {
		if err = f.fsync(); err == nil {
			f.synced = last
		}
	}
	if err != nil {
		return errors.Join(err, f.truncate(), f.closeSegment())
	}
	f.size += int64(len(rows))
	f.idxSize += int64(len(records))
	return nil
}

// truncate cuts both files to the sizes that are known to be complete.
func (f *files) truncate() error {
	return errors.Join(f.data.Truncate(f.size), f.idx.Truncate(f.idxSize))
}

// fsync syncs both files to disk.
func (f *files) fsync() error {
	return errors.Join(f.data.Sync(), f.idx.Sync())
}

// roll opens the file for this second: the current one, or the next if that is full or of another date. The log must be locked.
func (f *files) roll(start time.Time) error {
	date := start.Format(time.DateOnly)
	if f.current.date == date {
		if f.data != nil && (!same(f.path(f.current), f.data) || !same(f.path(f.current)+idxSuffix, f.idx) || !f.unchanged()) {
			// It was deleted, moved or truncated.
			if err := f.closeSegment(); err != nil {
				return err
			}
		}
		if f.data == nil {
			if err := f.open(); err != nil {
				return err
			}
		}
		if !f.full(0) {
			f.retain(start.Unix(), false)
			return nil
		}
	}
	if err := f.closeSegment(); err != nil {
		return err
	}
	n, err := f.nextFor(date)
	if err != nil {
		return err
	}
	f.current = segment{log: f.log, date: date, n: n, first: start.Unix()}
	f.retain(start.Unix(), true)
	return f.open()
}

// full reports whether the next file begins after so many more bytes.
func (f *files) full(more int) bool { return f.size+int64(more) >= f.maxSize }

// sameDate reports whether seconds of the same time zone belong into files of the same date.
func sameDate(a, b time.Time) bool {
	y, m, d := a.Date()
	year, month, day := b.Date()
	return d == day && m == month && y == year
}

// same reports whether the file at the path is the one that is open.
func same(path string, open *os.File) bool {
	at, err := os.Stat(path)
	if err != nil {
		return false
	}
	opened, err := open.Stat()
	return err == nil && os.SameFile(at, opened)
}

// unchanged reports whether the data file has the size that was written.
func (f *files) unchanged() bool {
	size, err := f.data.Seek(0, io.SeekEnd)
	return err == nil && size == f.size
}

// open opens the current file and its index, makes them if needed, and removes what a crash left incomplete. A file whose index
// is another file's is left alone, and the next number is used.
func (f *files) open() error {
	for {
		path := f.path(f.current)
		data, size, err := openEnd(path)
		if err != nil {
			return err
		}
		idx, idxSize, err := openEnd(path + idxSuffix)
		if err != nil {
			return errors.Join(err, data.Close())
		}
		f.data, f.size, f.idx, f.idxSize = data, size, idx, idxSize
		ours, err := f.repair()
		if err == nil && f.sync > 0 && size == 0 {
			err = syncDir(f.dir) // or a power cut could remove the new file
		}
		if err != nil {
			return errors.Join(err, f.closeSegment())
		}
		if ours {
			return nil
		}
		if err := f.closeSegment(); err != nil {
			return err
		}
		f.current.n++
		f.next = nil
	}
}

func openEnd(path string) (*os.File, int64, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, 0, err
	}
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, 0, errors.Join(err, file.Close())
	}
	return file, size, nil
}

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
	var errs []error
	if f.sync > 0 {
		errs = append(errs, f.fsync())
	}
	errs = append(errs, f.data.Close(), f.idx.Close())
	f.data, f.idx = nil, nil
	return errors.Join(errs...)
}

// syncDir syncs a directory's entries to disk.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
