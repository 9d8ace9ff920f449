package metriclog

import (
	"bytes"
	"strconv"

	"github.com/windowstat/windowstat/collector"
)

// format describes the lines of one kind of log.
type format struct {
	kind  string // as in file names
	begin string // before the timestamp
	end   string // after the timestamp
	total []byte // only in a line of [collector.InboundTotal], the last one of a second
}

// maxStamp is the most bytes of a line up to the end of its timestamp.
const maxStamp = 32

var (
	sentinel = format{kind: "log", end: "|", total: []byte("|" + collector.InboundTotal + "|")}
	jsonl    = format{kind: "json", begin: `{"ts":`, end: ",", total: []byte(`"resource":"` + collector.InboundTotal + `"`)}
)

func formatOf(kind string) format {
	if kind == jsonl.kind {
		return jsonl
	}
	return sentinel
}

// second returns the Unix time of a line's second. It reports false for a malformed line.
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

// length returns the length in bytes of the lines of a second at the start of rows; 0 if one of them is truncated or malformed.
// Lines of a later second may follow, the last one truncated. complete says that the last line is the total of inbound calls,
// with which the Writer ends a second.
func (f *format) length(rows []byte, second int64) (n int, complete bool) {
	for n < len(rows) {
		rest := rows[n:]
		end := bytes.IndexByte(rest, '\n')
		got, ok := f.second(rest)
		switch {
		case ok && got != second:
			return n, complete
		case complete && (!ok || end < 0):
			return n, complete // garbage behind a complete second
		case end < 0 && len(rest) < maxStamp && !ok && n > 0 && f.begins(rest):
			return n, complete // truncated within the timestamp: it may be a later second's
		case !ok || end < 0:
			return 0, false
		}
		complete = bytes.Contains(rest[:end], f.total)
		n += end + 1
	}
	return n, complete
}

// begins reports whether this may be a line that was truncated within its timestamp.
func (f *format) begins(rest []byte) bool {
	n := min(len(rest), len(f.begin))
	return string(rest[:n]) == f.begin[:n] && len(bytes.Trim(rest[n:], "0123456789")) == 0
}
