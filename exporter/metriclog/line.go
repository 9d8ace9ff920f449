package metriclog

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// maxStamp is the most bytes of a line up to the end of its timestamp.
const maxStamp = 32

// totalField is what only a line of [collector.InboundTotal] has, the last one of a second.
var totalField = []byte("|" + collector.InboundTotal + "|")

// isTotal reports whether a line is the last one of a second.
func isTotal(line []byte) bool { return bytes.Contains(line, totalField) }

// appendHead appends the first two fields, which all lines of a second share.
func appendHead(b []byte, start time.Time) []byte {
	b = strconv.AppendInt(b, start.UnixMilli(), 10)
	b = append(b, '|')
	return append(appendTime(b, start), '|')
}

// appendTime appends a time in the format of [time.DateTime], by way of the one that package time is twice as quick in.
func appendTime(b []byte, t time.Time) []byte {
	begin := len(b)
	b = t.AppendFormat(b, time.RFC3339)
	if b[begin+len(time.DateOnly)] != 'T' { // a year of more digits
		return t.AppendFormat(b[:begin], time.DateTime)
	}
	b[begin+len(time.DateOnly)] = ' '
	return b[:begin+len(time.DateTime)]
}

// appendLine appends the row of one resource.
func appendLine(b, head []byte, resource string, m *node.MetricNode) []byte {
	return appendNode(appendName(append(b, head...), resource), m)
}

// appendNode appends what is behind the name.
func appendNode(b []byte, m *node.MetricNode) []byte {
	for _, v := range [...]int64{m.Pass, m.Block, m.Complete, m.Exception, m.AvgRT().Milliseconds(), m.OccupiedPass, m.InFlightMax} {
		b = append(b, '|')
		b = strconv.AppendInt(b, v, 10)
	}
	return append(b, "|0\n"...)
}

// appendTotal is appendNode for the row of [collector.InboundTotal]. It appends the run as a further field, which readers of
// Sentinel's format skip: sentinel-golang and the Java dashboard read the fields that they know by their position.
func appendTotal(b []byte, m *node.MetricNode, run int64) []byte {
	b = appendNode(b, m)
	b = append(b[:len(b)-1], '|')
	return append(strconv.AppendInt(b, run, 10), '\n')
}

// hex are the digits of escapes.
const hex = "0123456789abcdef"

// escaped reports whether a byte of a name is escaped: it would end a field or a line, or control a terminal.
func escaped(c byte) bool { return c < ' ' || c == '|' || c == 0x7f }

// appendName appends a name with | and control characters as \xHH and a backslash as two. Few have any of these.
func appendName(b []byte, name string) []byte {
	for i := range len(name) {
		if c := name[i]; c == '\\' || escaped(c) {
			return appendEscaped(append(b, name[:i]...), name[i:])
		}
	}
	return append(b, name...)
}

// appendEscaped is appendName of what begins with one of these.
func appendEscaped(b []byte, name string) []byte {
	for i := range len(name) {
		switch c := name[i]; {
		case c == '\\':
			b = append(b, '\\', '\\')
		case escaped(c):
			b = append(b, '\\', 'x', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return b
}

// parseName is the inverse of appendName. It keeps escapes that appendName does not write.
func parseName(b []byte) string {
	i := bytes.IndexByte(b, '\\')
	if i < 0 {
		return string(b)
	}
	name := append(make([]byte, 0, len(b)), b[:i]...)
	for b = b[i:]; len(b) > 0; {
		if len(b) >= 2 && b[0] == '\\' && b[1] == '\\' {
			name, b = append(name, '\\'), b[2:]
			continue
		}
		if len(b) >= 4 && b[0] == '\\' && b[1] == 'x' {
			high, low := strings.IndexByte(hex, b[2]), strings.IndexByte(hex, b[3])
			if c := byte(high<<4 | low); high >= 0 && low >= 0 && escaped(c) {
				name, b = append(name, c), b[4:]
				continue
			}
		}
		name, b = append(name, b[0]), b[1:]
	}
	return string(name)
}

// Row is one line of the log. Counts are as in [node.MetricNode].
type Row struct {
	Start                                         time.Time // in UTC
	Resource                                      string
	Pass, Block, Success, Exception, OccupiedPass int64
	RT                                            time.Duration // average, in whole milliseconds
	Concurrency                                   int64
	// Run identifies the process that counted the second; see [collector.Collector.RunID]. It is 0 in all rows but that of
	// the total, and in logs of Sentinel.
	Run int64
	// App and PID are from the names of the files; PID is 0 if they have none. [Parse] leaves both empty.
	App string
	PID int
}

// Parse reads a line, with or without its newline. Like Sentinel it accepts lines of older versions, which lack some of the last
// three fields.
func Parse(line string) (Row, error) {
	var p parser
	rest, ok := p.stamp([]byte(strings.TrimSuffix(line, "\n")))
	name, counts, named := bytes.Cut(rest, []byte("|"))
	if !ok || !named || !p.counts(counts) {
		return Row{}, fmt.Errorf("metriclog: 8 to 12 fields are needed, of which all but the date and the name are numbers, and none too large, in line %.80q", line)
	}
	p.row.Resource = parseName(name)
	return p.row, nil
}

// parser reads lines. It caches the first two fields, which the lines of one second share.
type parser struct {
	row  Row
	unix int64 // of the row's second
	head []byte
}

// stamp parses the first two fields of a line into the row, and returns the rest. It reports false if they are invalid.
func (p *parser) stamp(line []byte) (rest []byte, ok bool) {
	if len(p.head) > 0 && bytes.HasPrefix(line, p.head) {
		return line[len(p.head):], true
	}
	stamp, rest, _ := bytes.Cut(line, []byte("|"))
	_, rest, ok = bytes.Cut(rest, []byte("|"))
	ms, err := strconv.ParseInt(string(stamp), 10, 64)
	if !ok || err != nil {
		return nil, false
	}
	p.head = append(p.head[:0], line[:len(line)-len(rest)]...)
	p.row.Start = time.UnixMilli(ms).UTC()
	p.unix = p.row.Start.Unix()
	return rest, true
}

// counts parses the fields behind the name into the row. Nearly all have too few digits to overflow, and no sign: they take one pass.
// It reports false if one is invalid.
func (p *parser) counts(rest []byte) bool {
	const maxDigits = 18
	var v [9]int64
	n := 0
	for more := true; more; n++ {
		if n == len(v) {
			return false
		}
		number, i := int64(0), 0
		for ; i < len(rest) && i < maxDigits && rest[i]-'0' <= 9; i++ {
			number = number*10 + int64(rest[i]-'0')
		}
		if i == 0 || i < len(rest) && rest[i] != '|' {
			field, _, _ := bytes.Cut(rest, []byte("|"))
			var err error
			if number, err = strconv.ParseInt(string(field), 10, 64); err != nil {
				return false
			}
			i = len(field)
		}
		v[n] = number
		if more = i < len(rest); more {
			rest = rest[i+1:]
		}
	}
	const least = 5 // the last of pass, block, success, exception and rt
	const most = math.MaxInt64 / int64(time.Millisecond)
	if n < least || v[4] > most || v[4] < -most {
		return false
	}
	r := &p.row
	r.Pass, r.Block, r.Success, r.Exception = v[0], v[1], v[2], v[3]
	r.RT = time.Duration(v[4]) * time.Millisecond
	r.OccupiedPass, r.Concurrency, r.Run = v[5], v[6], max(v[8], 0)
	return true
}
