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

// maxTimestamp bounds the length of a timestamp and its separator. Lines with a longer timestamp are invalid.
const maxTimestamp = 32

// totalField occurs only in the line of [collector.InboundTotal], the last line of a second.
var totalField = []byte("|" + collector.InboundTotal + "|")

// isTotal reports whether a line is the total, the last line of a second.
func isTotal(line []byte) bool { return bytes.Contains(line, totalField) }

// appendHead appends the first two fields. All lines of a second share them.
func appendHead(b []byte, start time.Time) []byte {
	b = strconv.AppendInt(b, start.UnixMilli(), 10)
	b = append(b, '|')
	return append(appendTime(b, start), '|')
}

// appendTime appends t in the format of [time.DateTime]. It formats t as RFC 3339 and replaces the T, because package
// time formats RFC 3339 twice as fast.
func appendTime(b []byte, t time.Time) []byte {
	begin := len(b)
	b = t.AppendFormat(b, time.RFC3339)
	if b[begin+len(time.DateOnly)] != 'T' { // the year has more than four digits
		return t.AppendFormat(b[:begin], time.DateTime)
	}
	b[begin+len(time.DateOnly)] = ' '
	return b[:begin+len(time.DateTime)]
}

// appendLine appends the line of one resource.
func appendLine(b, head []byte, resource string, m *node.MetricNode) []byte {
	return appendNode(appendName(append(b, head...), resource), m)
}

// appendNode appends the fields after the name, and the newline.
func appendNode(b []byte, m *node.MetricNode) []byte {
	for _, v := range [...]int64{
		m.Pass, m.Block, m.Complete, m.Exception, m.AvgRT().Milliseconds(), m.OccupiedPass, m.InFlightMax,
	} {
		b = append(b, '|')
		b = strconv.AppendInt(b, v, 10)
	}
	return append(b, "|0\n"...) // the classification
}

// appendTotal appends the same fields as appendNode for the row of [collector.InboundTotal], and the run as a further
// field. Readers of Sentinel's format skip this field: sentinel-golang and the Java dashboard read the fields by
// position.
func appendTotal(b []byte, m *node.MetricNode, run int64) []byte {
	b = appendNode(b, m)
	b = append(b[:len(b)-1], '|')
	return append(strconv.AppendInt(b, run, 10), '\n')
}

// hexDigits has the digits of escapes.
const hexDigits = "0123456789abcdef"

// mustEscape reports whether a byte of a name must be escaped, because it would end a field or a line, or control a
// terminal.
func mustEscape(c byte) bool { return c < ' ' || c == '|' || c == 0x7f }

// appendName appends a name. It writes | and control characters as \xHH and doubles backslashes. Few names have any of
// these, so it only searches for the first one.
func appendName(b []byte, name string) []byte {
	for i := range len(name) {
		if c := name[i]; c == '\\' || mustEscape(c) {
			return appendEscaped(append(b, name[:i]...), name[i:])
		}
	}
	return append(b, name...)
}

// appendEscaped is appendName for a name that starts with a character to escape.
func appendEscaped(b []byte, name string) []byte {
	for i := range len(name) {
		switch c := name[i]; {
		case c == '\\':
			b = append(b, '\\', '\\')
		case mustEscape(c):
			b = append(b, '\\', 'x', hexDigits[c>>4], hexDigits[c&15])
		default:
			b = append(b, c)
		}
	}
	return b
}

// parseName is the inverse of appendName. It keeps escapes unchanged that appendName never writes.
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
			high, low := strings.IndexByte(hexDigits, b[2]), strings.IndexByte(hexDigits, b[3])
			if c := byte(high<<4 | low); high >= 0 && low >= 0 && mustEscape(c) {
				name, b = append(name, c), b[4:]
				continue
			}
		}
		name, b = append(name, b[0]), b[1:]
	}
	return string(name)
}

// Row holds a line of the log. The counts have the meaning of the fields in [node.MetricNode].
type Row struct {
	Start                                         time.Time // in UTC
	Resource                                      string
	Pass, Block, Success, Exception, OccupiedPass int64
	RT                                            time.Duration // average, in whole milliseconds
	Concurrency                                   int64
	// Run identifies the process that counted the second; see [collector.Collector.RunID]. Only the total has a run. In
	// all other rows, and in logs of Sentinel, Run is 0.
	Run int64
	// App and PID come from the file name. PID is 0 in names without a process ID. [Parse] sets neither.
	App string
	PID int
}

// Parse parses a line, with or without its newline. Like Sentinel, it accepts lines of older versions, which lack some
// of the last three fields.
func Parse(line string) (Row, error) {
	var p parser
	rest, ok := p.parseHead([]byte(strings.TrimSuffix(line, "\n")))
	name, counts, named := bytes.Cut(rest, []byte("|"))
	if !ok || !named || !p.parseCounts(counts) {
		const want = "need 8 to 12 fields, all except date and name integers in range"
		return Row{}, fmt.Errorf("metriclog: invalid line %.80q: %s", line, want)
	}
	p.row.Resource = parseName(name)
	return p.row, nil
}

// parser parses lines. It caches the first two fields, because consecutive lines mostly share them.
type parser struct {
	row  Row
	unix int64  // second of row.Start
	head []byte // first two fields of the last line, with their separators
}

// parseHead parses the first two fields of a line into p.row and returns the rest of the line. It returns false if the
// fields are invalid.
func (p *parser) parseHead(line []byte) (rest []byte, ok bool) {
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

// parseCounts parses the fields after the name into p.row. It returns false if a field is invalid. Nearly all fields
// have no sign and too few digits to overflow; parseCounts reads these in a single pass.
func (p *parser) parseCounts(rest []byte) bool {
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
	const minFields = 5 // pass, block, success, exception and rt
	const maxRT = math.MaxInt64 / int64(time.Millisecond)
	if n < minFields || v[4] > maxRT || v[4] < -maxRT {
		return false
	}
	r := &p.row
	r.Pass, r.Block, r.Success, r.Exception = v[0], v[1], v[2], v[3]
	r.RT = time.Duration(v[4]) * time.Millisecond
	r.OccupiedPass, r.Concurrency, r.Run = v[5], v[6], max(v[8], 0)
	return true
}
