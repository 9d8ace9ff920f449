package metriclog

import (
	"bytes"
	"encoding/binary"
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

const (
	idxSuffix = ".idx"
	idxRecord = 16
)

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
		if x, ok := f.parse(e.Name()); ok {
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

// resume finds the newest file, to be appended to, removes what a crash left half-written at its end, and returns
// the Unix time of its last second; 0 if there is none.
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
	defer func() { err = errors.Join(err, f.close()) }()

	// The last line is found from the end: a line is far shorter than this.
	const tail = 64 << 10
	from := max(f.size-tail, 0)
	buf := make([]byte, f.size-from)
	if _, err := f.data.ReadAt(buf, from); err != nil && !errors.Is(err, io.EOF) {
		return 0, err
	}
	whole := bytes.LastIndexByte(buf, '\n') + 1
	f.size = from + int64(whole)
	line := buf[:whole]
	if whole > 0 {
		line = line[bytes.LastIndexByte(line[:whole-1], '\n')+1:]
	}
	stamp, _, _ := bytes.Cut(line, []byte("|"))
	ms, _ := strconv.ParseInt(string(stamp), 10, 64)
	f.idxSize -= f.idxSize % idxRecord
	return ms / 1000, f.restore()
}

// append writes the rows of the second that starts at start, in the log's time zone, in one write, and its record in
// the index. What was written of a second that failed is taken back.
func (f *files) append(start time.Time, rows []byte) error {
	if err := f.roll(start.Format(time.DateOnly)); err != nil {
		return err
	}
	var record [idxRecord]byte
	binary.BigEndian.PutUint64(record[:8], uint64(start.Unix()))
	binary.BigEndian.PutUint64(record[8:], uint64(f.size))
	_, err := f.data.WriteAt(rows, f.size)
	if err == nil {
		_, err = f.idx.WriteAt(record[:], f.idxSize)
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
		if f.data == nil {
			if err := f.reopen(); err != nil {
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
		path := filepath.Join(f.dir, f.name(all[0]))
		if err := errors.Join(remove(path), remove(path+idxSuffix)); err != nil {
			return err
		}
		all = all[1:]
	}
	f.current = next
	return f.open()
}

func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// reopen opens the current file again after an error, without what could not be taken back then.
func (f *files) reopen() error {
	size, idxSize := f.size, f.idxSize
	if err := f.open(); err != nil {
		return err
	}
	f.size, f.idxSize = min(f.size, size), min(f.idxSize, idxSize)
	if err := f.restore(); err != nil {
		return errors.Join(err, f.close())
	}
	return nil
}

// open opens the current file and its index, at their ends.
func (f *files) open() error {
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
	return nil
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
