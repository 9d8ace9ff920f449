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

// ensureOpen opens the log again unless the lock file, the segment and the index on disk are the open ones and have the
// expected sizes.
func (f *files) ensureOpen() error {
	path := f.path(f.current)
	if f.locked() && sizeIfSame(path, f.data) == f.size && sizeIfSame(path+idxSuffix, f.idx) == f.idxSize {
		return nil
	}
	return f.reopen()
}

// reopen locks the log, opens and repairs the newest segment, and finds the last second of the log. The newest segment
// does not always have the last second, because a clock may have been set back.
func (f *files) reopen() error {
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
		// An unreadable segment is an error only if its date allows later seconds and no other process has deleted it.
		if _, end := s.span(); end > f.last && s.err != nil && !errors.Is(s.err, os.ErrNotExist) {
			return errors.Join(s.err, f.closeSegment())
		}
		f.last = max(f.last, s.last)
	}
	return nil
}

// lockPath returns the path of the lock file.
func (f *files) lockPath() string { return filepath.Join(f.Dir, f.log) + lockSuffix }

// locked reports whether this process has the lock and the lock file exists under its path.
func (f *files) locked() bool { return f.lock != nil && f.lock.InPlace() }

// acquire locks the log unless this process has the lock. A locked log has one writing process. On systems without
// locks, acquire succeeds and excludes no other process.
func (f *files) acquire() error {
	if f.locked() {
		return nil
	}
	if err := os.MkdirAll(f.Dir, 0o755); err != nil {
		return err
	}
	lock, err := filelock.Lock(f.lockPath())
	if errors.Is(err, filelock.ErrHeld) {
		return fmt.Errorf("%s: another process writes this log; each process needs its own App or Dir",
			f.lockPath())
	}
	if err != nil {
		return err
	}
	if f.lock != nil {
		_ = f.lock.Close() // the lock file was deleted
	}
	f.lock = lock
	return nil
}

// sizeIfSame returns the size of the file at path if it is the open file. Otherwise, or if open is nil, it returns -1.
func sizeIfSame(path string, open *os.File) int64 {
	at, err := os.Stat(path)
	if err != nil {
		return -1
	}
	if opened, err := open.Stat(); err != nil || !os.SameFile(at, opened) {
		return -1
	}
	return at.Size()
}

// open opens or creates the current segment and its index, and repairs both. It raises f.last to the last second of the
// segment.
func (f *files) open() error {
	path := f.path(f.current)
	data, size, err := openOrCreate(path)
	if err != nil {
		return err
	}
	idx, idxSize, err := openOrCreate(path + idxSuffix)
	if err != nil {
		return errors.Join(err, data.Close())
	}
	f.data, f.size, f.idx, f.idxSize = data, size, idx, idxSize
	err = f.repair()
	if err == nil && f.Sync > 0 && size == 0 {
		err = atomicfile.SyncDir(f.Dir) // otherwise a power cut could remove the new file
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w", path, err), f.closeSegment())
	}
	return nil
}

// openOrCreate opens or creates a file and returns its size.
func openOrCreate(path string) (*os.File, int64, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, 0, err
	}
	size, err := file.Seek(0, io.SeekEnd)
	return file, size, err
}

// repair restores the promise of the package comment for the open files: the segment ends with a complete second, and
// every complete second has an index record.
//
//	segment:  complete seconds … | incomplete second         truncate at completeEnd
//	index:    records … | records that match no line         truncate after the last record that matches
//	index:    records … | complete seconds without a record  append the missing records
//
// A crash can leave a part of a second. After a power cut, the disk may have one file without the other, and any part
// of both. No readable second disappears: repair derives missing records from the lines. Unreadable lines before the
// last complete second stay.
func (f *files) repair() error {
	from, to := f.current.span()
	o := &segmentReader{f.data, from, to, f.size}
	end, _, err := o.completeEnd(true)
	if err != nil {
		return err
	}
	var last, scanFrom int64
	x := index{f.idx, int(f.idxSize / idxRecord)}
	// Find the last index record that matches a line. The index may lack the seconds after it. Usually the last record
	// of the file matches, and repair reads only the lines of its second.
	for ; x.n > 0; x.n-- {
		if second, offset := x.record(x.n - 1); offset < end && o.matches(second, offset) {
			last, scanFrom = second, offset
			break
		}
	}
	kept, missing := int64(x.n)*idxRecord, []byte(nil)
	for lines := newLineReader(f.data, scanFrom, end, end); ; {
		line, err := lines.next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if second, ok := o.second(line); ok && second > last {
			missing, last = appendRecord(missing, second, lines.lineStart), second
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
