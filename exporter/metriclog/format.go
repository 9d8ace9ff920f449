package metriclog

import (
	"bytes"
	"strconv"

	"github.com/windowstat/windowstat/collector"
)

// format is what distinguishes the lines of one kind of log from those of another.
type format struct {
	kind    string // as in the names of files
	begin   string // what stands before the time stamp
	end     string // and what behind it
	closing []byte // what only a line of [collector.InboundTotal] has, the last one of a second
}

// maxStamp is how many bytes at the beginning of a line have its time stamp.
const maxStamp = 32

var (
	sentinel = format{kind: "log", end: "|", closing: []byte("|" + collector.InboundTotal + "|")}
	jsonl    = format{kind: "json", begin: `{"ts":`, end: ",", closing: []byte(`"resource":"` + collector.InboundTotal + `"`)}
)

func formatOf(kind string) format {
	if kind == jsonl.kind {
		return jsonl
	}
	return sentinel
}

// second is the Unix time of a line's second. It reports false for what does not begin as a line does.
func (f *format) second(line []byte) (int64, bool) {
	if len(line) > maxStamp {
		line = line[:maxStamp]
	}
	rest, ok := bytes.CutPrefix(line, []byte(f.begin))
	if !ok {
		return 0, false
	}
	stamp, _, ok := bytes.Cut(rest, []byte(f.end))
	if !ok {
		return 0, false
	}
	ms, err := strconv.ParseInt(string(stamp), 10, 64)
	return ms / 1000, err == nil && ms > 0
}

// whole is how many bytes the lines of a second have at the start of rows; 0 if one of them is torn or is no line.
// Lines of a later second may follow, and the beginning of one. closed says that the last line is the one that the
// Writer ends a second with.
func (f *format) whole(rows []byte, second int64) (n int, closed bool) {
	for n < len(rows) {
		rest := rows[n:]
		end := bytes.IndexByte(rest, '\n')
		got, ok := f.second(rest)
		switch {
		case ok && got != second:
			return n, closed
		case closed && (!ok || end < 0):
			return n, closed // whatever that is
		case end < 0 && len(rest) < maxStamp && !ok && n > 0 && f.begins(rest):
			return n, closed // not even a time stamp: it may be a later second's
		case !ok || end < 0:
			return 0, false
		}
		closed = bytes.Contains(rest[:end], f.closing)
		n += end + 1
	}
	return n, closed
}

// begins reports whether this may be the beginning of a line, cut off within its time stamp.
func (f *format) begins(rest []byte) bool {
	n := min(len(rest), len(f.begin))
	return string(rest[:n]) == f.begin[:n] && len(bytes.Trim(rest[n:], "0123456789")) == 0
}
