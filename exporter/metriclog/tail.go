package metriclog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

// File is a file of a metric log, known by its name.
type File struct {
	Log
	Name string // without the directory
}

// Files returns the files of the logs that s reads, sorted by log, date and number. It opens none of them. A file that
// is created during the call may be missing. The error means that the directory cannot be read.
func (s Searcher) Files() ([]File, error) {
	app := fileName(s.App)
	all, err := segmentsByName(s.Dir, func(x segment) bool { return app == "" || x.app == app })
	if err != nil {
		return nil, fmt.Errorf("metriclog: %w", err)
	}
	files := make([]File, len(all))
	for i, x := range all {
		files[i] = File{Log{x.app, x.pid}, x.name()}
	}
	return files, nil
}

// Tail reads the rows of one file, each of them once, while another program appends to the file. Create it with
// [NewTail]. It keeps no file open, and is not safe for concurrent use. A Tail takes a few hundred bytes, and the names
// of the resources in the file.
//
// Unlike a [Searcher], a Tail also returns the rows of seconds that are being written. It skips malformed lines, lines
// of seconds that the file's name rules out, and lines longer than 64 KiB, and counts them. It waits for the rest of a
// line without a newline. It also reads the lines of Sentinel for C++, which have no date.
type Tail struct {
	path     string
	from, to int64       // range of seconds that the date in the name allows
	offset   int64       // of the next line
	long     bool        // the line that ends at offset is too long
	last     os.FileInfo // of the file that was read last
	names    map[string]string
	parser
	malformed int64
}

// NewTail returns a Tail of the file with this name in dir. It begins with the first line.
func NewTail(dir string, f File) (*Tail, error) {
	x, ok := parseSegment(f.Name)
	if !ok {
		return nil, fmt.Errorf("metriclog: %.100q is not the name of a file of a metric log", f.Name)
	}
	t := &Tail{path: filepath.Join(dir, f.Name), names: map[string]string{}}
	t.from, t.to = x.span()
	t.row.App, t.row.PID = x.app, x.pid
	return t, nil
}

// Seek skips rows before the second of from, as far as the index of the file shows where they are. Without a valid
// index it skips nothing.
func (t *Tail) Seek(from time.Time) error {
	x, _ := parseSegment(filepath.Base(t.path))
	o, err := openSegment(filepath.Dir(t.path), x)
	if err != nil {
		return fmt.Errorf("metriclog: %w", err)
	}
	defer o.Close() //nolint:errcheck // opened for reading only
	t.offset, _, err = o.bisect(from.Unix(), 1<<61)
	if err != nil {
		err = fmt.Errorf("metriclog: %w", err)
	}
	return err
}

// buffers holds buffers for reading. They are longer than the longest line.
var buffers = sync.Pool{New: func() any { return new([4 * maxLine]byte) }}

// Read calls f for each row that was completely written since the last call, until f returns false; the next call then
// begins with the row that f did not take. The row is valid until f returns. If the file is shorter than before, or was
// replaced by another one, Read begins with its first line. The error is os.ErrNotExist if the file was deleted.
func (t *Tail) Read(f func(*Row) bool) error {
	now, err := os.Stat(t.path)
	if err == nil && t.last != nil && (now.Size() < t.offset || !os.SameFile(now, t.last)) {
		t.offset, t.long, t.last = 0, false, nil
	}
	if err != nil || now.Size() == t.offset || t.last != nil && now.Size() == t.last.Size() {
		return err
	}
	file, err := os.Open(t.path)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // opened for reading only
	buffer := buffers.Get().(*[4 * maxLine]byte)
	defer buffers.Put(buffer)
	for b := buffer[:]; ; {
		n, err := file.ReadAt(b, t.offset)
		if !t.lines(b[:n], f) {
			t.last = nil
			return nil
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				t.last, err = now, nil
			}
			return err
		}
	}
}

// lines parses the complete lines in b, which begins at t.offset, and advances the offset past them. It returns false
// if f does not take a row.
func (t *Tail) lines(b []byte, f func(*Row) bool) bool {
	full := len(b) == cap(b)
	for begin := true; ; begin = false {
		line, rest, ok := bytes.Cut(b, []byte("\n"))
		if !ok {
			if begin && full { // the line is longer than the buffer
				t.offset += int64(len(b))
				t.long = true
			}
			return true
		}
		if empty := len(line) == 0 && !t.long; empty {
			// written by some versions for C++
		} else if t.long || len(line) >= maxLine || !t.parse(line) {
			t.malformed++
		} else if !f(&t.row) {
			return false
		}
		t.long = false
		t.offset += int64(len(line)) + 1
		b = rest
	}
}

// parse parses a line into the row. It returns false if the line is malformed.
func (t *Tail) parse(line []byte) bool {
	rest, ok := t.parseHead(line)
	if !ok || t.unix < t.from || t.unix >= t.to {
		return false
	}
	raw, counts, _ := bytes.Cut(rest, []byte("|"))
	if !t.parseCounts(counts) && !t.parseCounts(withoutRT(counts)) {
		if raw, counts = withoutDate(line); !t.parseCounts(counts) {
			return false
		}
	}
	name, ok := t.names[string(raw)]
	if !ok {
		if len(t.names) >= maxNames {
			clear(t.names)
		}
		name = parseName(raw)
		t.names[string(raw)] = name
	}
	t.row.Resource = name
	return true
}

// withoutDate returns the name and the numbers of a line of Sentinel for C++, which has neither a date nor a field
// after the average response time. The numbers are empty for other lines.
func withoutDate(line []byte) (name, counts []byte) {
	_, rest, _ := bytes.Cut(line, []byte("|"))
	name, counts, _ = bytes.Cut(rest, []byte("|"))
	if bytes.Count(counts, []byte("|")) != 4 {
		return nil, nil
	}
	return name, counts
}

// withoutRT sets the average response time in the fields after the name to 0 if it is out of range: sentinel-golang
// logs 18446744073709551611 if a clock was set back. The other numbers of the row are right.
func withoutRT(counts []byte) []byte {
	const rt = 4
	fields := bytes.Split(counts, []byte("|"))
	if len(fields) <= rt {
		return nil
	}
	if _, err := strconv.ParseUint(string(fields[rt]), 10, 64); err != nil {
		return nil
	}
	fields[rt] = []byte("0")
	return bytes.Join(fields, []byte("|"))
}

// Ended reports whether the file has ended before a second: all its rows are earlier, by the date in its name.
func (t *Tail) Ended(before time.Time) bool { return t.to <= before.Unix() }

// Malformed returns the number of lines that were skipped so far.
func (t *Tail) Malformed() int64 { return t.malformed }
