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

// row is a row of the output: a row of the log, or the sums of several.
//
// A search reuses one row for all rows of the log, so a consumer must not keep a row.
type row struct {
	*metriclog.Row
	line []byte // the line in the log; nil for sums
	sums *sums  // nil for a row of the log
}

// layout has the properties of the output that depend on the query, not on the format.
type layout struct {
	// zone applies to all formats except sentinel, which prints the lines of the log unchanged.
	zone    *time.Location
	several bool // rows are from several logs, so a table has a column with the log
	sums    bool // rows are sums, so they have two more columns: the busiest second and its value
	screen  bool // the output is a terminal, so lines of the log are escaped with [Visible]
}

// format describes how a row becomes a line of output.
type format struct {
	// Layout of times; empty if the line has no formatted time.
	time  string
	line  func(b []byte, at string, r *row, l *layout) []byte // appends the line of a row whose time is at
	head  func(b []byte, l *layout) []byte                    // appends the header; nil if there is none
	alone bool                                                // write the header even if there are no rows
}

// formats has the formats by the value of [Options].Output.
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

// lines writes rows in a format. Rows of one second follow each other, so it formats the time of a second once.
type lines struct {
	*bufio.Writer
	*format
	layout
	// begun prevents a second header if write is called for each search of --follow.
	begun bool // the header was written
	// second is the last second that was formatted, and at is the result. Formatting a time is expensive in comparison
	// with appending a number.
	second time.Time
	at     string // the formatted second
	line   []byte // buffer for the next line
}

// newLines returns lines that write to w.
func newLines(w io.Writer, f *format, l layout) *lines {
	// A large buffer makes few system calls: a day of a log has millions of rows.
	return &lines{Writer: bufio.NewWriterSize(w, 64<<10), format: f, layout: l}
}

// write writes rows and flushes them. The caller may call it repeatedly; only the first call writes the header.
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
		// Reuse the buffer of the last row: a new buffer for each row would be slow.
		p.line = append(p.format.line(p.line[:0], p.at, r, &p.layout), '\n')
		if _, err := p.Write(p.line); err != nil {
			return err
		}
	}
	return p.Flush()
}

// begin writes the header before the first row. It ignores an error of the write, because a later Write or Flush
// returns the same error.
func (p *lines) begin() {
	if !p.begun && p.head != nil {
		_, _ = p.Write(append(p.head(nil, &p.layout), '\n'))
	}
	p.begun = true
}

// appendJSON appends a row as a JSON object. The counts have the names of the per-second metrics.
//
// The object is written by hand, because its keys are fixed, and package json would allocate memory for each row.
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

// appendKeys appends the header line of CSV.
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

// appendCSV appends a line of CSV in the syntax of RFC 4180, except that lines end with LF instead of CR LF. Names are
// escaped with [Visible].
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

// appendField appends a name as a field of CSV. It quotes a name that contains separators or begins with a space. It
// writes an apostrophe before a name that a spreadsheet would evaluate as a formula.
func appendField(b []byte, name string) []byte {
	// Visible also escapes line breaks, so a field never needs quotes for them.
	s := Visible(name)
	// Spreadsheets evaluate fields that begin with these characters even if the fields are quoted. A name may be from
	// an untrusted client.
	if s != "" && strings.ContainsRune("=+-@", rune(s[0])) {
		s = "'" + s
	}
	if !strings.ContainsAny(s, `",`) && !strings.HasPrefix(s, " ") {
		return append(b, s...)
	}
	return append(append(append(b, '"'), strings.ReplaceAll(s, `"`, `""`)...), '"')
}

// TimeLayout is the layout of times in the output. --from and --to accept this layout, so a user can copy a time.
const TimeLayout = "2006-01-02 15:04:05-07:00"

// appendTitles appends the header line of a table.
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

// appendTable appends a row as a line of a table. Names are in the last columns, so long names do not move the numbers.
func appendTable(b []byte, at string, r *row, l *layout) []byte {
	b = append(b, at...)
	for i := range columns {
		c := &columns[i]
		v := c.value(r.Row)
		if c.time {
			// A table shows whole milliseconds, because the log has no finer times.
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

// formatTime returns a time in a zone, or the text unknown for the zero time.
func formatTime(t time.Time, zone *time.Location, layout, unknown string) string {
	if t.IsZero() {
		return unknown
	}
	return t.In(zone).Format(layout)
}

// appendNumber appends a number, aligned to the right of its column.
func appendNumber(b []byte, title string, v int64) []byte {
	// The longest int64 has 20 characters. The array is on the stack, so the number is formatted without an allocation.
	var buf [20]byte
	digits := strconv.AppendInt(buf[:0], v, 10)
	for range max(width(title)-len(digits), 0) + 2 {
		b = append(b, ' ')
	}
	return append(b, digits...)
}

// width returns the width of a column of numbers: the width of its title, but at least six digits.
func width(title string) int { return max(len(title), 6) }
