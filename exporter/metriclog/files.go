package metriclog

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// files are the data file that is being written and its index, and the ones before them.
type files struct {
	format
	dir, log string
	maxSize  int64
	keep     retention
	sync     time.Duration // 0 for never

	lock          *os.File       // nil while closed
	next          map[string]int // number of the next file of a day; nil if that is to be looked up
	current       segment
	data, idx     *os.File // nil while closed
	size, idxSize int64    // what they hold
	records       []byte   // a buffer
	before        [2]int64 // and what they held before the last second
	synced        int64    // Unix time of the last second that is known to be on the disk
	looked        int64    // of the second at which it was last looked for files to delete
}

func (f *files) path(s segment) string { return filepath.Join(f.dir, s.name()) }

// list returns the log's files, oldest first.
func (f *files) list() ([]segment, error) {
	return segments(f.dir, f.kind, func(log string) bool { return log == f.log })
}

// resume takes the log for this process, finds the newest file, to be appended to, and returns the Unix time of the last
// second that the log holds; 0 if there is none.
func (f *files) resume() (last int64, err error) {
	if err := errors.Join(f.closeSegment(), f.hold()); err != nil {
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

// held reports whether the log is this process's.
func (f *files) held() bool { return f.lock != nil && same(f.lockPath(), f.lock) }

func (f *files) lockPath() string { return filepath.Join(f.dir, f.log) + lockSuffix }

// hold keeps other processes away from the log.
func (f *files) hold() error {
	if f.held() {
		return nil
	}
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return err
	}
	lock, _, err := lockFile(f.lockPath())
	if err != nil {
		return err
	}
	if f.lock != nil {
		_ = f.lock.Close() // somebody deleted it
	}
	f.lock, f.next = lock, nil // somebody else may have had it
	return nil
}

// numberOf is the number of a day's next file. Nobody else makes any while the log is held.
func (f *files) numberOf(date string) (int, error) {
	if f.next == nil {
		all, err := named(f.dir, f.kind, func(log string) bool { return log == f.log })
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

// last is the last second in files, oldest first; 0 if there is none.
func (f *files) last(all []segment) (int64, error) {
	for _, s := range slices.Backward(all) {
		o, err := openSegment(f.dir, s, f.format)
		if errors.Is(err, os.ErrNotExist) {
			continue // another process deleted it
		}
		if err != nil {
			return 0, err
		}
		last, err := o.last()
		if err := errors.Join(err, o.Close()); err != nil || last > 0 {
			return last, err
		}
	}
	return 0, nil
}

// append writes the rows of the second that starts at start, in the log's time zone.
func (f *files) append(start time.Time, rows []byte) error {
	return f.appendAll(start, rows, []mark{{start.Unix(), 0}})
}

// mark is where the rows of a second begin.
type mark struct{ second, offset int64 }

// appendAll writes the rows of seconds of one date, of which the first is given, in one write, and then their records in
// the index, which make them count: what has no record is taken back, at once or when the file is opened again.
func (f *files) appendAll(start time.Time, rows []byte, marks []mark) error {
	if err := f.roll(start); err != nil {
		return err
	}
	f.before = [2]int64{f.size, f.idxSize}
	records := f.records[:0]
	for _, m := range marks {
		records = appendRecord(records, m.second, f.size+m.offset)
	}
	f.records = records
	_, err := f.data.WriteAt(rows, f.size)
	if err == nil {
		_, err = f.idx.WriteAt(records, f.idxSize)
	}
	f.size += int64(len(rows))
	f.idxSize += int64(len(records))
	if err == nil && f.sync > 0 && start.Unix()-f.synced >= int64(f.sync/time.Second) {
		if err = f.flush(); err == nil {
			f.synced = start.Unix()
		}
	}
	if err != nil {
		return errors.Join(err, f.undo(), f.closeSegment())
	}
	return nil
}

// undo takes the last second back.
func (f *files) undo() error {
	f.size, f.idxSize = f.before[0], f.before[1]
	if f.data == nil {
		return nil
	}
	return f.restore()
}

// restore cuts both files back to what is known to be whole.
func (f *files) restore() error {
	return errors.Join(f.data.Truncate(f.size), f.idx.Truncate(f.idxSize))
}

// flush has the disk keep what was written.
func (f *files) flush() error {
	return errors.Join(f.data.Sync(), f.idx.Sync())
}

// roll makes sure that a file for this second with room is open.
func (f *files) roll(start time.Time) error {
	date := start.Format(time.DateOnly)
	if err := f.hold(); err != nil {
		return err
	}
	if f.current.date == date {
		if f.data != nil && (!same(f.path(f.current), f.data) || !same(f.path(f.current)+idxSuffix, f.idx) || !f.asLeft()) {
			// Somebody deleted, moved or truncated it.
			if err := f.closeSegment(); err != nil {
				return err
			}
		}
		if f.data == nil {
			if err := f.open(); err != nil {
				return err
			}
		}
		if f.size < f.maxSize {
			f.retain(start.Unix(), false)
			return nil
		}
	}
	if err := f.closeSegment(); err != nil {
		return err
	}
	n, err := f.numberOf(date)
	if err != nil {
		return err
	}
	f.current = segment{log: f.log, date: date, n: n, first: start.Unix()}
	f.retain(start.Unix(), true)
	return f.open()
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

// asLeft reports whether the file is as long as it was left.
func (f *files) asLeft() bool {
	size, err := f.data.Seek(0, io.SeekEnd)
	return err == nil && size == f.size
}

// open opens the current file and its index, makes them if need be, and cuts off what a crash left behind. A file
// with an index that is not its own is kept as it is, and the next number taken.
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
			err = syncDir(f.dir) // or a power cut could take the new file as a whole
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

// close closes the files and lets other processes have the log.
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
		errs = append(errs, f.flush())
	}
	errs = append(errs, f.data.Close(), f.idx.Close())
	f.data, f.idx = nil, nil
	return errors.Join(errs...)
}

// syncDir has the disk keep the names in a directory.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
