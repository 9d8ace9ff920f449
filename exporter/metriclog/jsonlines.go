package metriclog

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// jsonLines are the lines of one second in the log of JSON lines: the columns of the record by name, response times in
// seconds under "rt" with their quantiles, and the main counts of each origin and entrance:
//
//	{"ts":1767323045000,"time":"2026-01-02T03:04:05Z","resource":"a","pass":1,…,"rt":{"sum_seconds":0.008,…,"p50_seconds":0.008,…},
//	"origins":{"":{"pass":1,…}},"entrances":{"http":{"pass":1,…}}}
type jsonLines struct {
	buf     []byte
	hist    node.Histogram
	node    node.MetricNode // of a part
	untimed bool            // response times are not known
}

// jsonColumn is a column with its name as a JSON key.
type jsonColumn struct {
	key string
	node.Column
}

// The columns of a line, by where they stand. Times lose their prefix, which is the name of their object.
var (
	jsonCounts  = jsonColumns(func(c node.Column) bool { return c.Kind != node.Time })
	jsonUntimed = jsonColumns(func(c node.Column) bool { return c.Kind != node.Time && c.Kind != node.CallTime })
	jsonTimes   = jsonColumns(func(c node.Column) bool { return c.Kind == node.Time })
	jsonParts   = jsonColumns(func(c node.Column) bool { return c.Kind == node.Count && !c.Detail })
)

func jsonColumns(wanted func(node.Column) bool) (list []jsonColumn) {
	for _, c := range node.Columns() {
		switch {
		case !wanted(c):
		case c.Kind == node.Time:
			list = append(list, jsonColumn{`"` + strings.TrimPrefix(c.Name, "rt_") + `_seconds":`, c})
		default:
			list = append(list, jsonColumn{`"` + c.Name + `":`, c})
		}
	}
	return list
}

// jsonQuantiles are those of the response times.
var jsonQuantiles = []struct {
	key string
	q   float64
}{{`,"p50_seconds":`, .5}, {`,"p90_seconds":`, .9}, {`,"p99_seconds":`, .99}, {`,"p999_seconds":`, .999}}

// appendJSONHead appends what all lines of a second begin with.
func appendJSONHead(b []byte, start time.Time) []byte {
	b = strconv.AppendInt(append(b, `{"ts":`...), start.UnixMilli(), 10)
	b = start.AppendFormat(append(b, `,"time":"`...), time.RFC3339)
	return append(b, `","resource":`...)
}

// add appends the line of a resource behind its head; nil is no resource, but a view of several.
func (l *jsonLines) add(b []byte, name string, r *collector.Resource, v *node.View, index int64, m *node.MetricNode) []byte {
	l.buf = appendString(b, name)
	counts := jsonCounts
	if l.untimed {
		counts = jsonUntimed
	}
	l.buf = appendColumns(append(l.buf, ','), counts, m)
	if m.Complete > 0 && !l.untimed {
		l.buf = appendColumns(append(l.buf, `,"rt":{`...), jsonTimes, m)
		if v.Histogram(index, index+1, &l.hist) { // or the Collector does not know it any more
			for _, q := range jsonQuantiles {
				l.buf = appendSeconds(append(l.buf, q.key...), l.hist.Quantile(q.q))
			}
		}
		l.buf = append(l.buf, '}')
	}
	if r != nil {
		begin := len(l.buf)
		for name, view := range r.Origins() {
			l.part(begin, `,"origins":{`, name, view.Node(), index, v, m)
		}
		l.end(begin)
		begin = len(l.buf)
		entrances := 0
		for range r.Entrances() {
			entrances++
		}
		for name, view := range r.Entrances() {
			part := view.Node()
			if entrances == 1 {
				part = v
			}
			l.part(begin, `,"entrances":{`, name, part, index, v, m)
		}
		l.end(begin)
	}
	b, l.buf = append(l.buf, "}\n"...), nil
	return b
}

// part adds a part of a resource's calls that did anything in the second, to an object that begins with a key. The record of
// the whole resource is that of its only origin or entrance, too.
func (l *jsonLines) part(begin int, key, name string, part *node.View, index int64, whole *node.View, m *node.MetricNode) {
	if part != whole {
		var ok bool
		if l.node, ok = part.Second(index); !ok {
			return
		}
		m = &l.node
	}
	if m.Idle() {
		return
	}
	if len(l.buf) == begin {
		l.buf = append(l.buf, key...)
	} else {
		l.buf = append(l.buf, ',')
	}
	l.buf = append(appendString(l.buf, name), ":{"...)
	l.buf = append(appendColumns(l.buf, jsonParts, m), '}')
}

// end ends an object of parts, if there is one.
func (l *jsonLines) end(begin int) {
	if len(l.buf) > begin {
		l.buf = append(l.buf, '}')
	}
}

// appendString appends a string as encoding/json writes it without escapes for HTML: what is not UTF-8 as U+FFFD.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	done := 0 // what is appended, or need not be escaped
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		size := 1
		if c >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRuneInString(s[i:]); (r != utf8.RuneError || size > 1) && r != '\u2028' && r != '\u2029' {
				i += size
				continue
			}
		}
		b = append(b, s[done:i]...)
		if short := strings.IndexByte("\b\f\n\r\t\"\\", c); short >= 0 {
			b = append(b, '\\', `bfnrt"\`[short])
		} else if c < ' ' {
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		} else if size == 1 {
			b = append(b, `\ufffd`...)
		} else {
			b = append(b, `\u202`...)
			b = append(b, hex[s[i+2]&15]) // 8 or 9
		}
		i += size
		done = i
	}
	return append(append(b, s[done:]...), '"')
}

// appendColumns appends keys and values, with commas between them.
func appendColumns(b []byte, columns []jsonColumn, m *node.MetricNode) []byte {
	for i := range columns {
		c := &columns[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, c.key...)
		if v := *c.At(m); c.Kind == node.Time || c.Kind == node.CallTime {
			b = appendSeconds(b, time.Duration(v))
		} else {
			b = strconv.AppendInt(b, v, 10)
		}
	}
	return b
}

// appendSeconds appends a time that is not negative in seconds, exactly: with as many decimals as it has, nine at most.
func appendSeconds(b []byte, d time.Duration) []byte {
	b = strconv.AppendInt(b, int64(d/time.Second), 10)
	rest := uint32(d % time.Second)
	if rest == 0 {
		return b
	}
	last := len(b) + 9
	for rest%1000 == 0 {
		rest /= 1000
		last -= 3
	}
	b = append(b, ".000000000"...)
	for i := last; rest > 0; i-- {
		b[i] += byte(rest % 10)
		rest /= 10
	}
	for b[last] == '0' {
		last--
	}
	return b[:last+1]
}
