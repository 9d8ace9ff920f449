package logquery

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// row is a row of the output: a row of the log, or sums of rows.
type row struct {
	*metriclog.Row
	line []byte // line of the log; nil for sums
	sums *sums  // nil for a row of the log
}

// layout has the properties of the output that depend on the query.
type layout struct {
	zone    *time.Location
	several bool // there are several logs, so a table names the log of each row
	sums    bool // rows are sums, with the busiest second
	screen  bool // the output is a terminal, so lines of the log are shown as [Visible] does
}

// format describes the line of a row.
type format struct {
	time  string // layout of times; empty for the lines of the log, which exclude sums
	line  func(b []byte, at string, r *row, l *layout) []byte
	head  func(b []byte, l *layout) []byte // header; nil without one
	alone bool                             // write the header even without rows
}

// formats has the values of [Options].Output.
var formats = map[string]*format{
	"table": {time: TimeLayout, line: appendTable, head: appendTitles},
	"json":  {time: time.RFC3339, line: appendJSON},
	"csv":   {time: time.RFC3339, line: appendCSV, head: appendKeys, alone: true},
	"sentinel": {line: func(b []byte, _ string, r *row, l *layout) []byte {
		if l.screen {
			return append(b, Visible(string(r.line))...)
		}
		return append(b, r.line...)
	}},
}

// Formats returns the values of --format.
func Formats() []string { return slices.Sorted(maps.Keys(formats)) }

// lines writes rows in a format. Rows of one second follow each other, so it formats their time once.
type lines struct {
	*bufio.Writer
	*format
	layout
	begun  bool
	second time.Time
	at     string
	line   []byte
}

// newLines returns lines that write to w.
func newLines(w io.Writer, f *format, l layout) *lines {
	return &lines{Writer: bufio.NewWriterSize(w, 64<<10), format: f, layout: l}
}

// write writes rows and flushes them. It may be called repeatedly.
func (p *lines) write(rows iter.Seq[*row]) error {
	// CSV readers need the header even without rows.
	if p.alone {
		p.begin()
	}
	for r := range rows {
		p.begin()
		if p.format.time != "" && (p.at == "" || !r.Start.Equal(p.second)) {
			p.second, p.at = r.Start, r.Start.In(p.zone).Format(p.format.time)
		}
		p.line = append(p.format.line(p.line[:0], p.at, r, &p.layout), '\n')
		if _, err := p.Write(p.line); err != nil {
			return err
		}
	}
	return p.Flush()
}

// begin writes the header before the first row. The next Write or Flush returns its error.
func (p *lines) begin() {
	if !p.begun && p.head != nil {
		_, _ = p.Write(append(p.head(nil, &p.layout), '\n'))
	}
	p.begun = true
}

// appendJSON appends an object. Counts have the names of the per-second metrics.
func appendJSON(b []byte, at string, r *row, l *layout) []byte {
	b = strconv.AppendInt(append(b, `{"ts":`...), r.Start.UnixMilli(), 10)
	b = append(append(append(b, `,"time":"`...), at...), `","app":`...)
	b = append(b, quoted(r.App)...)
	if r.PID != 0 {
		b = strconv.AppendInt(append(b, `,"pid":`...), int64(r.PID), 10)
	}
	b = append(append(b, `,"resource":`...), quoted(r.Resource)...)
	for i := range columns {
		c := &columns[i]
		b = c.append(append(append(append(b, `,"`...), c.key...), `":`...), r.Row)
	}
	if l.sums {
		b = strconv.AppendInt(append(b, `,"peak":`...), r.sums.peak, 10)
		if at := formatTime(r.sums.peakAt, l.zone, time.RFC3339, ""); at != "" {
			b = append(append(append(b, `,"peak_time":"`...), at...), '"')
		}
	}
	return append(b, '}')
}

// appendKeys appends the header of CSV.
func appendKeys(b []byte, l *layout) []byte {
	b = append(b, "time,app,pid,resource"...)
	for _, c := range columns {
		b = append(append(b, ','), c.key...)
	}
	if l.sums {
		b = append(b, ",peak,peak_time"...)
	}
	return b
}

// appendCSV appends a line of CSV as in RFC 4180, except that lines end with a newline alone. Names are escaped with
// [Visible].
func appendCSV(b []byte, at string, r *row, l *layout) []byte {
	b = append(appendField(append(append(b, at...), ','), r.App), ',')
	if r.PID != 0 {
		b = strconv.AppendInt(b, int64(r.PID), 10)
	}
	b = appendField(append(b, ','), r.Resource)
	for i := range columns {
		b = columns[i].append(append(b, ','), r.Row)
	}
	if l.sums {
		b = strconv.AppendInt(append(b, ','), r.sums.peak, 10)
		b = append(append(b, ','), formatTime(r.sums.peakAt, l.zone, time.RFC3339, "")...)
	}
	return b
}

// appendField appends a name as a field. It quotes a name that contains separators or begins with a space. An
// apostrophe precedes a name that a spreadsheet would evaluate as a formula.
func appendField(b []byte, name string) []byte {
	s := Visible(name)
	if s != "" && strings.ContainsRune("=+-@", rune(s[0])) {
		s = "'" + s
	}
	if !strings.ContainsAny(s, `",`) && !strings.HasPrefix(s, " ") {
		return append(b, s...)
	}
	return append(append(append(b, '"'), strings.ReplaceAll(s, `"`, `""`)...), '"')
}

// TimeLayout is the layout of times in the output. --from and --to accept such times.
const TimeLayout = "2006-01-02 15:04:05-07:00"

// appendTitles appends the header of a table.
func appendTitles(b []byte, l *layout) []byte {
	b = fmt.Appendf(b, "%-*s", len(TimeLayout), "time")
	for _, c := range columns {
		b = fmt.Appendf(b, "  %*s", width(c.title), c.title)
	}
	if l.sums {
		b = fmt.Appendf(b, "  %*s  %-*s", width("peak"), "peak", len(TimeLayout), "at")
	}
	if l.several {
		b = fmt.Appendf(b, "  %-12s", "log")
	}
	return append(b, "  resource"...)
}

// appendTable appends a line of a table. Names are the last columns, so they may have any length.
func appendTable(b []byte, at string, r *row, l *layout) []byte {
	b = append(b, at...)
	for i := range columns {
		c := &columns[i]
		v := c.value(r.Row)
		if c.time {
			v /= int64(time.Millisecond)
		}
		b = appendNumber(b, c.title, v)
	}
	if l.sums {
		b = appendNumber(b, "peak", r.sums.peak)
		b = fmt.Appendf(b, "  %-*s", len(TimeLayout), formatTime(r.sums.peakAt, l.zone, TimeLayout, "-"))
	}
	if l.several {
		b = fmt.Appendf(b, "  %-12s", Visible(metriclog.Log{App: r.App, PID: r.PID}.String()))
	}
	return append(append(b, "  "...), Visible(r.Resource)...)
}

// formatTime returns a time in a zone, or unknown for the zero time.
func formatTime(t time.Time, zone *time.Location, layout, unknown string) string {
	if t.IsZero() {
		return unknown
	}
	return t.In(zone).Format(layout)
}

// appendNumber appends a number, aligned to the right in its column.
func appendNumber(b []byte, title string, v int64) []byte {
	var buf [20]byte
	digits := strconv.AppendInt(buf[:0], v, 10)
	for range max(width(title)-len(digits), 0) + 2 {
		b = append(b, ' ')
	}
	return append(b, digits...)
}

// width returns the width of a column of numbers: its title, but at least six digits.
func width(title string) int { return max(len(title), 6) }
