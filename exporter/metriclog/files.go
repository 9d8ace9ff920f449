package metriclog

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// file is one file of the log, by what its name says.
type file struct {
	date string // yyyy-MM-dd
	n    int    // 0 for the first of the day, which has no number; -1 for no file
}

// files are the data file that is being written and its index, and the ones before them.
type files struct {
	dir, base string
	maxSize   int64
	maxFiles  int

	current       file
	data, idx     *os.File // nil while closed
	size, idxSize int64    // what they hold
}

func (f *files) name(x file) string {
	name := f.base + "." + x.date
	if x.n > 0 {
		name += "." + strconv.Itoa(x.n)
	}
	return name
}

// parse is the inverse of name. It reports false for the name of anything else.
func (f *files) parse(name string) (file, bool) {
	rest, ok := strings.CutPrefix(name, f.base+".")
	if !ok {
		return file{}, false
	}
	date, number, numbered := strings.Cut(rest, ".")
	if _, err := time.Parse(time.DateOnly, date); err != nil {
		return file{}, false
	}
	x := file{date: date}
	if numbered {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || strconv.Itoa(n) != number {
			return file{}, false
		}
		x.n = n
	}
	return x, true
}

// list returns the log's files, oldest first.
func (f *files) list() ([]file, error) {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return nil, err
	}
	var all []file
	for _, e := range entries {
		if x, ok := f.parse(e.Name()); ok && e.Type().IsRegular() {
			all = append(all, x)
		}
	}
	slices.SortFunc(all, func(a, b file) int {
		if c := strings.Compare(a.date, b.date); c != 0 {
			return c
		}
		return a.n - b.n
	})
	return all, nil
}

// resume finds the newest file, to be appended to, and returns the Unix time of the last second that the log holds; 0
// if there is none.
func (f *files) resume() (last int64, err error) {
	f.current.n = -1
	all, err := f.list()
	if err != nil || len(all) == 0 {
		return 0, err
	}
	f.current = all[len(all)-1]
	if err := f.open(); err != nil {
		return 0, err
	}
	if err := f.close(); err != nil {
		return 0, err
	}
	for ; last == 0 && len(all) > 0; all = all[:len(all)-1] {
		if last, err = f.lastIndexed(all[len(all)-1]); err != nil {
			return 0, err
		}
	}
	return last, nil
}

// lastIndexed is the last second in a file's index, if that is where the index says; 0 if not.
func (f *files) lastIndexed(x file) (last int64, err error) {
	path := filepath.Join(f.dir, f.name(x))
	idx, err := os.ReadFile(path + idxSuffix)
	if errors.Is(err, os.ErrNotExist) || err == nil && len(idx) < idxRecord {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	data, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	second, offset := parseRecord(idx[len(idx)/idxRecord*idxRecord-idxRecord:])
	stamp := strconv.AppendInt(nil, second*1000, 10)
	got := make([]byte, len(stamp))
	if _, err := data.ReadAt(got, offset); err != nil || !bytes.Equal(got, stamp) {
		return 0, nil // nothing there, or something else
	}
	return second, nil
}

// append writes the rows of the second that starts at start, in the log's time zone, in one write, and then its
// record in the index, which makes it count: what has no record is taken back, at once or when the file is opened
// again.
func (f *files) append(start time.Time, rows []byte) error {
	if err := f.roll(start.Format(time.DateOnly)); err != nil {
		return err
	}
	_, err := f.data.WriteAt(rows, f.size)
	if err == nil {
		_, err = f.idx.WriteAt(appendRecord(nil, start.Unix(), f.size), f.idxSize)
	}
	if err != nil {
		return errors.Join(err, f.restore(), f.close())
	}
	f.size += int64(len(rows))
	f.idxSize += idxRecord
	return nil
}

// restore cuts both files back to what is known to be whole.
func (f *files) restore() error {
	return errors.Join(f.data.Truncate(f.size), f.idx.Truncate(f.idxSize))
}

// roll makes sure that a file of this date with room is open.
func (f *files) roll(date string) error {
	if f.current.n >= 0 && f.current.date == date {
		if f.data != nil && !f.intact() {
			// Somebody deleted, moved or truncated it.
			if err := f.close(); err != nil {
				return err
			}
		}
		if f.data == nil {
			if err := f.open(); err != nil {
				return err
			}
		}
		if f.size < f.maxSize {
			return nil
		}
	}
	if err := f.close(); err != nil {
		return err
	}
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return err
	}
	all, err := f.list()
	if err != nil {
		return err
	}
	next := file{date: date}
	for _, x := range all {
		if x.date == date {
			next.n = x.n + 1
		}
	}
	for len(all) > 0 && len(all) >= f.maxFiles {
		// One that cannot be deleted must not stop the log; it is tried again at the next roll.
		path := filepath.Join(f.dir, f.name(all[0]))
		_ = os.Remove(path + idxSuffix)
		_ = os.Remove(path)
		all = all[1:]
	}
	f.current = next
	return f.open()
}

// intact reports whether the file at the path is still the one that is open, as long as it was left.
func (f *files) intact() bool {
	at, err := os.Stat(filepath.Join(f.dir, f.name(f.current)))
	if err != nil {
		return false
	}
	opened, err := f.data.Stat()
	return err == nil && os.SameFile(at, opened) && at.Size() == f.size
}

// open opens the current file and its index, makes them if need be, and cuts off what a crash left behind. A file
// with an index that is not its own is kept as it is, and the next number taken.
func (f *files) open() error {
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return err
	}
	for {
		path := filepath.Join(f.dir, f.name(f.current))
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
		if err != nil {
			return errors.Join(err, f.close())
		}
		if ours {
			return nil
		}
		if err := f.close(); err != nil {
			return err
		}
		f.current.n++
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

func (f *files) close() error {
	var errs []error
	for _, file := range []*os.File{f.data, f.idx} {
		if file != nil {
			errs = append(errs, file.Close())
		}
	}
	f.data, f.idx = nil, nil
	return errors.Join(errs...)
}
