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

// printer writes rows. What it holds back comes with flush.
type printer interface {
	print(*metriclog.Row) error
	flush() error
}

// printers are the formats of rows. Whoever looks at a table knows where it is from if there is one log.
var printers = map[string]func(w io.Writer, zone *time.Location, several bool) printer{
	"table": newTable,
	"json":  func(w io.Writer, zone *time.Location, _ bool) printer { return newJSON(w, zone) },
	"csv":   func(w io.Writer, zone *time.Location, _ bool) printer { return newCSV(w, zone) },
	"sentinel": func(w io.Writer, zone *time.Location, _ bool) printer {
		return &sentinelLines{bufio.NewWriter(w), zone, nil}
	},
}

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

// sentinelLines are lines as they stand in a log.
type sentinelLines struct {
	*bufio.Writer
	zone *time.Location
	line []byte
}

func (p *sentinelLines) print(r *metriclog.Row) error {
	p.line = r.AppendLine(p.line[:0], p.zone)
	_, err := p.Write(p.line)
	return err
}

func (p *sentinelLines) flush() error { return p.Flush() }

// jsonLines are lines of JSON. Counts have the names of the metrics of single seconds.
type jsonLines struct {
	*bufio.Writer
	stamp stamp
	names names
	line  []byte
}

func newJSON(w io.Writer, zone *time.Location) *jsonLines {
	return &jsonLines{bufio.NewWriter(w), stamp{layout: time.RFC3339, zone: zone}, names{shown: quoted}, nil}
}

func (p *jsonLines) print(r *metriclog.Row) error {
	b := strconv.AppendInt(append(p.line[:0], `{"ts":`...), r.Start.UnixMilli(), 10)
	b = append(append(append(b, `,"time":"`...), p.stamp.of(r.Start)...), `","app":`...)
	b = append(b, p.names.of(r.App)...)
	if r.PID != 0 {
		b = strconv.AppendInt(append(b, `,"pid":`...), int64(r.PID), 10)
	}
	b = append(append(b, `,"resource":`...), p.names.of(r.Resource)...)
	for _, x := range [...]struct {
		name  string
		value int64
	}{
		{`,"pass":`, r.Pass},
		{`,"block":`, r.Block},
		{`,"complete":`, r.Success},
		{`,"exception":`, r.Exception},
		{`,"occupied_pass":`, r.OccupiedPass},
		{`,"in_flight_max":`, r.Concurrency},
	} {
		b = strconv.AppendInt(append(b, x.name...), x.value, 10)
	}
	b = strconv.AppendFloat(append(b, `,"rt_avg_seconds":`...), r.RT.Seconds(), 'f', -1, 64)
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
	stamp  stamp
	names  names
	fields []string
}

var csvHeader = []string{
	"time", "app", "pid", "resource", "pass", "block", "complete", "exception", "occupied_pass", "in_flight_max", "rt_avg_seconds",
}

func newCSV(w io.Writer, zone *time.Location) *csvRows {
	p := &csvRows{csv.NewWriter(w), stamp{layout: time.RFC3339, zone: zone}, names{shown: noFormula}, nil}
	_ = p.Write(csvHeader) // flush has the error
	return p
}

func (p *csvRows) print(r *metriclog.Row) error {
	p.fields = append(p.fields[:0], p.stamp.of(r.Start), p.names.of(r.App), "", p.names.of(r.Resource))
	if r.PID != 0 {
		p.fields[2] = strconv.Itoa(r.PID)
	}
	for _, v := range [...]int64{r.Pass, r.Block, r.Success, r.Exception, r.OccupiedPass, r.Concurrency} {
		p.fields = append(p.fields, strconv.FormatInt(v, 10))
	}
	p.fields = append(p.fields, strconv.FormatFloat(r.RT.Seconds(), 'f', -1, 64))
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
