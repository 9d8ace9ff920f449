package metriclog

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/windowstat/windowstat/exporter/internal/filelock"
	"github.com/windowstat/windowstat/internal/atomicfile"
)

// ready resumes the log unless everything is as it was left.
func (f *files) ready() error {
	path := f.path(f.current)
	if f.locked() && sizeOf(path, f.data) == f.size && sizeOf(path+idxSuffix, f.idx) == f.idxSize {
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
	if len(all) == 0 {
		return nil
	}
	older := all[:len(all)-1]
	f.current = all[len(older)]
	if err := f.open(); err != nil {
		return err
	}
	for _, s := range slices.Backward(older) {
		// One that cannot be read may have later seconds, if its date allows it and no other process has deleted it.
		if _, end := s.span(); end > f.last && s.err != nil && !errors.Is(s.err, os.ErrNotExist) {
			return errors.Join(s.err, f.closeSegment())
		}
		f.last = max(f.last, s.last)
	}
	return nil
}

// lockPath is where the lock file is.
func (f *files) lockPath() string { return filepath.Join(f.Dir, f.log) + lockSuffix }

// locked reports whether this process has the lock, and the lock file still exists under its path.
func (f *files) locked() bool { return f.lock != nil && f.lock.InPlace() }

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

// sizeOf returns the size of the file at a path if it is the one that is open, and otherwise -1, also if none is open.
func sizeOf(path string, open *os.File) int64 {
	at, err := os.Stat(path)
	if err != nil {
		return -1
	}
	if opened, err := open.Stat(); err != nil || !os.SameFile(at, opened) {
		return -1
	}
	return at.Size()
}

// open opens the current file and its index, makes them if needed, removes what a crash left incomplete, and reads the last second.
func (f *files) open() error {
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
	err = f.repair()
	if err == nil && f.Sync > 0 && size == 0 {
		err = atomicfile.SyncDir(f.Dir) // or a power cut could remove the new file
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w", path, err), f.closeSegment())
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
	// The last record that fits the file is where what the index lacks begins. Mostly that is the last one, and nothing is read.
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
