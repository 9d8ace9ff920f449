package metriclog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// files are the files of one log: the data file that is written now, its index, and older ones.
//
// Nothing is taken for granted to be as it was left. Before each write ready looks whether lock, data file and index are still
// those that are open. If one is not, because it was deleted, moved, truncated or had by another process, the log is resumed from the
// disk, as at the start of a process: it is locked, its newest file is repaired, and its last second is read.
//
// Seconds are added to a buffer, and several of one date are written together: their rows in one write, and then their index
// records. If that fails, both files are truncated to the sizes that they had.
type files struct {
	dir, log string
	maxSize  int64
	keep     retention
	sync     time.Duration // interval; 0 for never

	lock          *os.File // nil while closed
	last          int64    // Unix time of the last second in the log; 0 if there is none
	current       segment
	data, idx     *os.File // nil while closed
	size, idxSize int64    // in bytes
	rows          []byte   // added, and not written
	marks         []mark   // where each of their seconds begins
	dayEnds       int64    // Unix time of the end of their date
	records       []byte   // a buffer
	synced        int64    // Unix time of the last second that was synced
	retained      int64    // Unix time of the second at which old files were last deleted
}

// mark is the offset at which the rows of a second begin.
type mark struct{ second, offset int64 }

func (f *files) path(s segment) string { return filepath.Join(f.dir, s.name()) }

// own reports whether a file is one of this log.
func (f *files) own(log string) bool { return log == f.log }

// list returns the log's files, oldest first.
func (f *files) list() ([]segment, error) { return segments(f.dir, f.own) }

// ready resumes the log unless everything is as it was left.
func (f *files) ready() error {
	if f.lock != nil && same(f.lockPath(), f.lock) &&
		(f.data == nil || same(f.path(f.current), f.data) && same(f.path(f.current)+idxSuffix, f.idx) && f.unchanged()) {
		return nil
	}
	return f.resume()
}

// resume locks the log for this process, opens the newest file to append to it, and reads which second is the last.
func (f *files) resume() error {
	err := errors.Join(f.closeSegment(), f.acquire())
	if err != nil {
		return errors.Join(err, f.close())
	}
	f.current = segment{}
	all, err := f.list()
	if err == nil && len(all) > 0 {
		f.current = all[len(all)-1]
		err = f.open()
	}
	last := int64(0)
	if err == nil {
		last, err = lastOf(f.dir, all)
	}
	if err != nil {
		return errors.Join(err, f.close())
	}
	f.last = max(f.last, last)
	return nil
}

// lastOf returns the last second in some files; 0 if there is none. It is not always in the newest: a clock may have been set back.
func lastOf(dir string, all []segment) (last int64, err error) {
	for _, s := range slices.Backward(all) {
		if _, most := s.span(); most <= last {
			continue
		}
		second, err := lastSecond(dir, s)
		if err != nil && !errors.Is(err, os.ErrNotExist) { // another process deleted it
			return 0, err
		}
		last = max(last, second)
	}
	return last, nil
}

// flushSize is how many bytes of rows are enough for one write.
const flushSize = 256 << 10

// errLate is the error for a second that is not after the last one.
var errLate = errors.New("the log has later seconds")

// end is the last second that was written or added.
func (f *files) end() int64 {
	if n := len(f.marks); n > 0 {
		return f.marks[n-1].second
	}
	return f.last
}

// add adds the rows of a second to those that flush writes. It reports false if these must be written first, because they are of
// another date or enough. Seconds must ascend, or the error is errLate.
func (f *files) add(start time.Time, rows []byte) (added bool, err error) {
	if len(f.marks) == 0 {
		if err := f.ready(); err != nil {
			return false, err
		}
	}
	switch n, second := len(f.marks), start.Unix(); {
	case second <= f.end():
		return false, errLate
	case n == 0:
		if err := f.roll(start); err != nil {
			return false, err
		}
		year, month, day := start.Date()
		f.dayEnds = time.Date(year, month, day+1, 0, 0, 0, 0, start.Location()).Unix()
	case second >= f.dayEnds || len(f.rows) >= flushSize || f.full():
		return false, nil
	}
	f.marks = append(f.marks, mark{start.Unix(), int64(len(f.rows))})
	f.rows = append(f.rows, rows...)
	return true, nil
}

// flush writes what was added. After an error it is gone, and may be added again.
func (f *files) flush() (err error) {
	if len(f.marks) == 0 {
		return nil
	}
	f.records = f.records[:0]
	for _, m := range f.marks {
		f.records = appendRecord(f.records, m.second, f.size+m.offset)
	}
	last := f.marks[len(f.marks)-1].second
	_, err = f.data.WriteAt(f.rows, f.size)
	if err == nil {
		_, err = f.idx.WriteAt(f.records, f.idxSize)
	}
	if err == nil && f.sync > 0 && last-f.synced >= int64(f.sync/time.Second) {
		if err = f.fsync(); err == nil {
			f.synced = last
		}
	}
	written := int64(len(f.rows))
	f.rows, f.marks = f.rows[:0], f.marks[:0]
	if err != nil {
		return errors.Join(err, f.truncate(), f.closeSegment())
	}
	f.size, f.idxSize, f.last = f.size+written, f.idxSize+int64(len(f.records)), last
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

// roll opens the file for a second: the current one, or the next if that is full or of another date.
func (f *files) roll(start time.Time) error {
	date, second := start.Format(time.DateOnly), start.Unix()
	if f.current.date == date {
		if f.data == nil {
			if err := f.open(); err != nil {
				return err
			}
		}
		if !f.full() {
			f.retain(second, false)
			return nil
		}
	}
	if err := f.closeSegment(); err != nil {
		return err
	}
	all, err := segmentsByName(f.dir, f.own)
	if err != nil {
		return err
	}
	f.current = segment{log: f.log, date: date, first: second}
	for _, s := range all {
		if s.date == date {
			f.current.n = max(f.current.n, s.n+1)
		}
	}
	f.retain(second, true)
	return f.open()
}

// full reports whether the next file begins behind what was added.
func (f *files) full() bool { return f.size+int64(len(f.rows)) >= f.maxSize }

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

// open opens the current file and its index, makes them if needed, and removes what a crash left incomplete.
func (f *files) open() (err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, f.closeSegment())
		}
	}()
	path := f.path(f.current)
	if f.data, f.size, err = openEnd(path); err != nil {
		return err
	}
	made := f.size == 0
	if f.idx, f.idxSize, err = openEnd(path + idxSuffix); err != nil {
		return err
	}
	if err = f.repair(); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if f.sync > 0 && made {
		return syncDir(f.dir) // or a power cut could remove the new file
	}
	return nil
}

func openEnd(path string) (*os.File, int64, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, 0, err
	}
	size, err := file.Seek(0, io.SeekEnd)
	return file, size, err
}

// repair truncates both open files behind the last complete second, see [segmentReader.completeEnd]: a crash can leave part of a
// second behind it, and after a power cut the disk may have one file without the other, and any part of it. Index records that are
// not of this file go, and those that it lacks are made, so that no second disappears that was readable.
func (f *files) repair() error {
	o := &segmentReader{data: f.data, idx: f.idx, index: index{f.idx, int(f.idxSize / idxRecord)}, size: f.size}
	o.from, o.to = f.current.span()
	end, err := o.completeEnd(true)
	if err != nil {
		return err
	}
	var last, from int64
	for ; o.n > 0; o.n-- {
		if second, offset := o.record(o.n - 1); offset < end && o.matches(second, offset) {
			last, from = second, offset
			break
		}
	}
	kept, missing := int64(o.n)*idxRecord, f.records[:0]
	for lines := newLineReader(f.data, from, end, end); ; {
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if second, ok := secondOf(line); ok && second > last && second >= o.from && second < o.to {
			missing, last = appendRecord(missing, second, lines.began), second
		}
	}
	f.records = missing
	if end == f.size && kept == f.idxSize && len(missing) == 0 {
		return nil
	}
	f.size, f.idxSize = end, kept
	if err := f.truncate(); err != nil {
		return err
	}
	_, err = f.idx.WriteAt(missing, f.idxSize)
	f.idxSize += int64(len(missing))
	return err
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
	var errs []error
	if f.sync > 0 && f.data != nil && f.idx != nil {
		errs = append(errs, f.fsync())
	}
	for _, file := range []**os.File{&f.data, &f.idx} {
		if *file != nil {
			errs = append(errs, (*file).Close())
			*file = nil
		}
	}
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
