package main

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// row is what is printed: a row of the log, or the sums of several.
type row struct {
	*metriclog.Row
	line   []byte // as in the log; nil for sums
	peak   int64  // of sums: the most in a second, and the first one with as much, the zero Time if there was nothing
	peakAt time.Time
}

// printer writes rows. What it holds back comes with flush.
type printer interface {
	print(*row) error
	flush() error
}

// shown is what printers show besides the columns.
type shown struct {
	zone    *time.Location
	several bool // logs; whoever looks at a table knows where it is from if there is one
	peaks   bool
}

// printers are the formats of rows.
var printers = map[string]func(io.Writer, shown) printer{
	"table":        newTable,
	"json":         newJSON,
	"csv":          newCSV,
	sentinelFormat: func(w io.Writer, _ shown) printer { return &sentinelLines{bufio.NewWriter(w)} },
}

// sentinelFormat has no sums.
const sentinelFormat = "sentinel"

// stamp shows times. Rows of one second come together, and it makes their time once.
type stamp struct {
	layout string
	zone   *time.Location
	at     time.Time
	text   string
}

func (s *stamp) of(at time.Time) string {
	if s.text == "" || !at.Equal(s.at) {
		s.at, s.text = at, at.In(s.zone).Format(s.layout)
	}
	return s.text
}

// sentinelLines are lines as they stand in a log, byte for byte.
type sentinelLines struct{ *bufio.Writer }

func (p *sentinelLines) print(r *row) error {
	_, _ = p.Write(r.line) // WriteByte has the error, too
	return p.WriteByte('\n')
}

func (p *sentinelLines) flush() error { return p.Flush() }

// jsonLines are lines of JSON. Counts have the names of the metrics of single seconds.
type jsonLines struct {
	*bufio.Writer
	shown
	stamp stamp
	names names
	line  []byte
}

func newJSON(w io.Writer, s shown) printer {
	return &jsonLines{bufio.NewWriter(w), s, stamp{layout: time.RFC3339, zone: s.zone}, names{shown: quoted}, nil}
}

func (p *jsonLines) print(r *row) error {
	b := strconv.AppendInt(append(p.line[:0], `{"ts":`...), r.Start.UnixMilli(), 10)
	b = append(append(append(b, `,"time":"`...), p.stamp.of(r.Start)...), `","app":`...)
	b = append(b, p.names.of(r.App)...)
	if r.PID != 0 {
		b = strconv.AppendInt(append(b, `,"pid":`...), int64(r.PID), 10)
	}
	b = append(append(b, `,"resource":`...), p.names.of(r.Resource)...)
	for i := range columns {
		c := &columns[i]
		b = c.append(append(append(append(b, `,"`...), c.key...), `":`...), r.Row)
	}
	if p.peaks {
		b = strconv.AppendInt(append(b, `,"peak":`...), r.peak, 10)
		if !r.peakAt.IsZero() {
			b = append(r.peakAt.In(p.zone).AppendFormat(append(b, `,"peak_time":"`...), time.RFC3339), '"')
		}
	}
	p.line = append(b, "}\n"...)
	_, err := p.Write(p.line)
	return err
}

func (p *jsonLines) flush() error { return p.Flush() }

// quoted is a name as a JSON string. What JSON allows to stand in one as it is, and a terminal may obey, is escaped, too:
// DEL, and the control characters from U+0080 on.
func quoted(name string) string {
	b, err := json.Marshal(name)
	if err != nil {
		panic(err) // it is a string
	}
	var out strings.Builder
	for _, r := range string(b) {
		if r >= 0x7f && r < 0xa0 {
			fmt.Fprintf(&out, `\u%04x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

// names remembers how names are shown.
type names struct {
	shown func(string) string
	known map[string]string
}

func (n *names) of(name string) string {
	s, ok := n.known[name]
	if !ok {
		const most = 10_000
		if n.known == nil || len(n.known) >= most {
			n.known = map[string]string{}
		}
		s = n.shown(name)
		n.known[name] = s
	}
	return s
}

// csvRows are comma-separated values with a header, as in RFC 4180 but for the end of a line, which is a newline alone.
// Names are shown as [visible] does.
type csvRows struct {
	*csv.Writer
	shown
	stamp  stamp
	names  names
	fields []string
	number []byte
}

func newCSV(w io.Writer, s shown) printer {
	p := &csvRows{csv.NewWriter(w), s, stamp{layout: time.RFC3339, zone: s.zone}, names{shown: noFormula}, nil, nil}
	_ = p.Write(csvHeader(s.peaks)) // flush has the error
	return p
}

func csvHeader(peaks bool) []string {
	header := []string{"time", "app", "pid", "resource"}
	for _, c := range columns {
		header = append(header, c.key)
	}
	if peaks {
		header = append(header, "peak", "peak_time")
	}
	return header
}

func (p *csvRows) print(r *row) error {
	p.fields = append(p.fields[:0], p.stamp.of(r.Start), p.names.of(r.App), "", p.names.of(r.Resource))
	if r.PID != 0 {
		p.fields[2] = strconv.Itoa(r.PID)
	}
	for i := range columns {
		p.number = columns[i].append(p.number[:0], r.Row)
		p.fields = append(p.fields, string(p.number))
	}
	if p.peaks {
		p.fields = append(p.fields, strconv.FormatInt(r.peak, 10), "")
		if !r.peakAt.IsZero() {
			p.fields[len(p.fields)-1] = r.peakAt.In(p.zone).Format(time.RFC3339)
		}
	}
	return p.Write(p.fields)
}

func (p *csvRows) flush() error {
	p.Flush()
	return p.Error()
}

// noFormula is a visible name, with an apostrophe before it if a spreadsheet would calculate it as a formula.
func noFormula(name string) string {
	s := visible(name)
	if s != "" && strings.ContainsRune("=+-@", rune(s[0])) {
		return "'" + s
	}
	return s
}

// visible escapes what cannot be printed in a name, or would change how the rest is shown, as in Go: \x1b or \u202e. So a
// backslash is two.
func visible(name string) string {
	quoted := strconv.Quote(name)
	if len(quoted) == len(name)+len(`""`) {
		return name
	}
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}
