package metriclog

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/windowstat/windowstat/node"
)

// Beside is the path of a file that goes with the log, in its directory: the application's name, a dash and the name.
func (w *Writer) Beside(name string) string { return filepath.Join(w.files.dir, w.app+"-"+name) }

// Past calls f for the rows of the seconds from from to before to, Unix times, that were in the log when the Writer was
// made, ascending by second, until f returns false; it implements exporter.Log. Of a record there is what the log has
// without a loss: the Start, Pass, Block, Complete, Exception, OccupiedPass and InFlightMax. The record is f's for the
// call. Names are as they were written. What cannot be read is left out, and counted with the errors.
func (w *Writer) Past(from, to int64, f func(resource string, m *node.MetricNode) bool) {
	w.mu.Lock()
	all, err := w.files.list()
	w.mu.Unlock()
	to = min(to, w.began())
	for _, x := range all {
		var more bool
		if more, err = w.read(filepath.Join(w.files.dir, w.files.name(x)), from, to, f, err); !more {
			break
		}
	}
	if err != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.stat.errors++
		w.logger.Error("metric log cannot be read", "dir", w.files.dir, "err", err)
	}
}

// began is the Unix time of the first second of this process.
func (w *Writer) began() int64 {
	name, _ := w.stats.Timeline().Name(w.first)
	return name.Unix()
}

// read is Past for one file. It returns whether there may be more, and the errors so far.
func (w *Writer) read(path string, from, to int64, f func(string, *node.MetricNode) bool, before error) (more bool, err error) {
	data, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return true, before // it was the oldest, and its time was up
	}
	if err != nil {
		return true, errors.Join(before, err)
	}
	defer func() { err = errors.Join(before, err, data.Close()) }()
	if _, err := data.Seek(offsetOf(path+idxSuffix, from), io.SeekStart); err != nil {
		return true, err
	}
	for lines := bufio.NewReaderSize(data, 64<<10); ; {
		line, err := lines.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return true, nil // without its newline it is no line
		}
		if err != nil {
			return true, err
		}
		row, err := Parse(line)
		if err != nil {
			continue
		}
		switch second := row.Start.Unix(); {
		case second < from, second > to+day: // out of place
			continue
		case second >= to:
			return true, nil
		}
		m := row.record()
		if !f(strings.ToValidUTF8(row.Resource, "\uFFFD"), &m) {
			return false, nil
		}
	}
}

// day is in seconds.
const day = 24 * 3600

// offsetOf is where the rows of the seconds from from on begin, as the index says. Without an index that is the
// beginning of the file.
func offsetOf(path string, from int64) int64 {
	idx, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	n := len(idx) / idxRecord
	record := func(i int) []byte { return idx[i*idxRecord:] }
	i := sort.Search(n, func(i int) bool {
		second, _ := parseRecord(record(i))
		return second >= from
	})
	if n == 0 {
		return 0
	}
	_, offset := parseRecord(record(min(i, n-1)))
	return max(offset, 0)
}

// record is what a row says of its second.
func (r *Row) record() node.MetricNode {
	return node.MetricNode{
		Start: r.Start,
		Counts: node.Counts{
			Pass: r.Pass, Block: r.Block, Complete: r.Success, Exception: r.Exception, OccupiedPass: r.OccupiedPass,
		},
		InFlightMax: r.Concurrency,
	}
}
