package logquery

import (
	"bufio"
	"encoding/csv"
	"io"
	"strconv"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// row is what is printed: a row of the log, or sums of several.
type row struct {
	*metriclog.Row
	line []byte // as in the log; nil for sums
	sums *sums  // nil for a row of the log
}

// printer writes rows. What it holds back comes with flush.
type printer interface {
	print(*row) error
	flush() error
}

// layout is what printers show besides the columns.
type layout struct {
	zone    *time.Location
	several bool // logs; a table says which
	sums    bool // rows are sums, with the busiest second
}

// stamp shows times. Rows of one second come together, and it makes their time once.
type stamp struct {
	format string
	zone   *time.Location
	at     time.Time
	text   string
}

func (s *stamp) of(at time.Time) string {
	if s.text == "" || !at.Equal(s.at) {
		s.at, s.text = at, at.In(s.zone).Format(s.format)
	}
	return s.text
}

// sentinelLines are lines as they stand in a log, byte for byte.
type sentinelLines struct{ *bufio.Writer }

func newSentinel(w io.Writer, _ layout) printer { return &sentinelLines{bufio.NewWriter(w)} }

func (p *sentinelLines) print(r *row) error {
	_, _ = p.Write(r.line) // WriteByte has the error, too
	return p.WriteByte('\n')
}

func (p *sentinelLines) flush() error { return p.Flush() }

// jsonLines are lines of JSON. Counts have the names of the metrics of single seconds.
type jsonLines struct {
	*bufio.Writer
	layout
	stamp stamp
	line  []byte
}

func newJSON(w io.Writer, l layout) printer {
	return &jsonLines{bufio.NewWriter(w), l, stamp{format: time.RFC3339, zone: l.zone}, nil}
}

func (p *jsonLines) print(r *row) error {
	b := strconv.AppendInt(append(p.line[:0], `{"ts":`...), r.Start.UnixMilli(), 10)
	b = append(append(append(b, `,"time":"`...), p.stamp.of(r.Start)...), `","app":`...)
	b = append(b, quoted(r.App)...)
	if r.PID != 0 {
		b = strconv.AppendInt(append(b, `,"pid":`...), int64(r.PID), 10)
	}
	b = append(append(b, `,"resource":`...), quoted(r.Resource)...)
	for i := range columns {
		c := &columns[i]
		b = c.append(append(append(append(b, `,"`...), c.key...), `":`...), r.Row)
	}
	if p.layout.sums {
		b = strconv.AppendInt(append(b, `,"peak":`...), r.sums.peak, 10)
		if !r.sums.peakAt.IsZero() {
			b = append(r.sums.peakAt.In(p.zone).AppendFormat(append(b, `,"peak_time":"`...), time.RFC3339), '"')
		}
	}
	p.line = append(b, "}\n"...)
	_, err := p.Write(p.line)
	return err
}

func (p *jsonLines) flush() error { return p.Flush() }

// csvRows are comma-separated values with a header, as in RFC 4180 but for the end of a line, which is a newline alone.
// Names are shown as [Visible] does.
type csvRows struct {
	*csv.Writer
	layout
	stamp  stamp
	fields []string
	number []byte
}

func newCSV(w io.Writer, l layout) printer {
	p := &csvRows{csv.NewWriter(w), l, stamp{format: time.RFC3339, zone: l.zone}, nil, nil}
	_ = p.Write(csvHeader(l.sums)) // flush has the error
	return p
}

func csvHeader(sums bool) []string {
	header := []string{"time", "app", "pid", "resource"}
	for _, c := range columns {
		header = append(header, c.key)
	}
	if sums {
		header = append(header, "peak", "peak_time")
	}
	return header
}

func (p *csvRows) print(r *row) error {
	p.fields = append(p.fields[:0], p.stamp.of(r.Start), noFormula(r.App), "", noFormula(r.Resource))
	if r.PID != 0 {
		p.fields[2] = strconv.Itoa(r.PID)
	}
	for i := range columns {
		p.number = columns[i].append(p.number[:0], r.Row)
		p.fields = append(p.fields, string(p.number))
	}
	if p.layout.sums {
		p.fields = append(p.fields, strconv.FormatInt(r.sums.peak, 10), "")
		if !r.sums.peakAt.IsZero() {
			p.fields[len(p.fields)-1] = r.sums.peakAt.In(p.zone).Format(time.RFC3339)
		}
	}
	return p.Write(p.fields)
}

func (p *csvRows) flush() error {
	p.Flush()
	return p.Error()
}
