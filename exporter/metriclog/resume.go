package metriclog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/windowstat/windowstat/exporter/internal/filelock"
	"github.com/windowstat/windowstat/internal/atomicfile"
)

// ready resumes the log unless everything is as it was left.
func (f *files) ready() error {
	if f.locked() && same(f.path(f.current), f.data) && same(f.path(f.current)+idxSuffix, f.idx) && f.unchanged() {
		return nil
	}
	return f.resume()
}

// resume locks the log for this process, opens the newest file to append to it, and reads which second is the last. That is not always
// in the newest: a clock may have been set back.
func (f *files) resume() error {
	if err := errors.Join(f.closeSegment(), f.acquire()); err != nil {
		return err
	}
	all, err := f.list()
	if err != nil {
		return err
	}
	f.current = segment{}
	for _, s := range all {
		if s.err != nil && !errors.Is(s.err, os.ErrNotExist) { // another process deleted it
			return s.err
		}
		f.last = max(f.last, f.current.last)
		f.current = s
	}
	if len(all) == 0 {
		return nil
	}
	return f.open()
}

// lockPath is where the lock file is.
func (f *files) lockPath() string { return filepath.Join(f.Dir, f.log) + lockSuffix }

// locked reports whether this process has the lock, and the file is still there for others to see it.
func (f *files) locked() bool { return f.lock != nil && same(f.lockPath(), f.lock.File) }

// acquire locks the log, if it is not locked: one process at a time writes it. Where the system has no locks, nothing keeps two from it.
func (f *files) acquire() error {
	if f.locked() {
		return nil
	}
	if err := os.MkdirAll(f.Dir, 0o755); err != nil {
		return err
	}
	lock, err := filelock.Lock(f.lockPath())
	if errors.Is(err, filelock.ErrHeld) {
		return fmt.Errorf("%s: another process writes this log; give each an App or a directory of its own", f.lockPath())
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

// same reports whether the file at the path is the one that is open; nil is none.
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

// open opens the current file and its index, makes them if needed, removes what a crash left incomplete, and reads the last second.
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
	if f.Sync > 0 && made {
		return atomicfile.SyncDir(f.Dir) // or a power cut could remove the new file
	}
	return nil
}

// openEnd opens a file, made if needed, and returns its size.
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
	from, to := f.current.span()
	o := &segmentReader{f.data, from, to, f.size}
	end, _, err := o.completeEnd(true)
	if err != nil {
		return err
	}
	var last, began int64
	x := index{f.idx, int(f.idxSize / idxRecord)}
	for ; x.n > 0; x.n-- {
		if second, offset := x.record(x.n - 1); offset < end && o.matches(second, offset) {
			last, began = second, offset
			break
		}
	}
	kept, missing := int64(x.n)*idxRecord, []byte(nil)
	for lines := newLineReader(f.data, began, end, end); ; {
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if second, ok := o.second(line); ok && second > last {
			missing, last = appendRecord(missing, second, lines.began), second
		}
	}
	f.last = max(f.last, last)
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
