package metriclog

import (
	"bytes"
	"encoding/json"
	"iter"
	"math"
	"strconv"
	"strings"
	"time"

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
	names   map[string][]byte // as JSON strings
	untimed bool              // response times are not known
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
	l.buf = append(b, l.name(name)...)
	counts := jsonCounts
	if l.untimed {
		counts = jsonUntimed
	}
	l.buf = appendColumns(append(l.buf, ','), counts, m)
	if m.Complete > 0 && !l.untimed {
		l.buf = appendColumns(append(l.buf, `,"rt":{`...), jsonTimes, m)
		if v.Histogram(index, index+1, &l.hist) { // or the Collector does not know it any more
			for _, q := range jsonQuantiles {
				l.buf = appendFloat(append(l.buf, q.key...), l.hist.Quantile(q.q).Seconds())
			}
		}
		l.buf = append(l.buf, '}')
	}
	if r != nil {
		l.parts(`,"origins":{`, r.Origins(), index)
		l.parts(`,"entrances":{`, r.Entrances(), index)
	}
	b, l.buf = append(l.buf, "}\n"...), nil
	return b
}

// parts adds the parts of a resource's calls that did anything in the second.
func (l *jsonLines) parts(key string, views iter.Seq2[string, collector.View], index int64) {
	before, first := len(l.buf), true
	l.buf = append(l.buf, key...)
	for name, view := range views {
		m, ok := view.Node().Second(index)
		if !ok || m.Idle() {
			continue
		}
		if !first {
			l.buf = append(l.buf, ',')
		}
		first = false
		l.buf = append(append(l.buf, l.name(name)...), ":{"...)
		l.buf = append(appendColumns(l.buf, jsonParts, &m), '}')
	}
	if first {
		l.buf = l.buf[:before]
		return
	}
	l.buf = append(l.buf, '}')
}

// maxJSONNames bounds the names that are remembered.
const maxJSONNames = 100_000

// name is a name as a JSON string.
func (l *jsonLines) name(name string) []byte {
	b, ok := l.names[name]
	if !ok {
		if l.names == nil || len(l.names) >= maxJSONNames {
			l.names = map[string][]byte{}
		}
		var out bytes.Buffer
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(false)
		if err := encoder.Encode(name); err != nil {
			panic(err) // it is a string
		}
		b = bytes.TrimSuffix(out.Bytes(), []byte("\n"))
		l.names[name] = b
	}
	return b
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
			b = appendFloat(b, time.Duration(v).Seconds())
		} else {
			b = strconv.AppendInt(b, v, 10)
		}
	}
	return b
}

// appendFloat appends a number as encoding/json writes it: without an exponent unless it is very small.
func appendFloat(b []byte, v float64) []byte {
	if v != 0 && math.Abs(v) < 1e-6 {
		b = strconv.AppendFloat(b, v, 'e', -1, 64)
		if n := len(b); b[n-2] == '0' && b[n-3] == '-' { // e-09 is e-9
			b = append(b[:n-2], b[n-1])
		}
		return b
	}
	return strconv.AppendFloat(b, v, 'f', -1, 64)
}
