package main

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

// table is for reading. The names are behind the numbers, so that no name is too long for its column.
type table struct {
	*bufio.Writer
	shown
	stamp stamp
	names names
	begun bool
	line  []byte
}

// timeLayout can be given to --from and --to.
const timeLayout = "2006-01-02 15:04:05-07:00"

func newTable(w io.Writer, s shown) printer {
	return &table{Writer: bufio.NewWriter(w), shown: s, stamp: stamp{layout: timeLayout, zone: s.zone}, names: names{shown: visible}}
}

func (p *table) print(r *row) error {
	if !p.begun {
		p.begun = true
		p.head()
	}
	p.line = append(p.line[:0], p.stamp.of(r.Start)...)
	for i := range columns {
		c := &columns[i]
		v := c.of(r.Row)
		if c.time {
			v /= int64(time.Millisecond)
		}
		p.number(c.title, v)
	}
	if p.peaks {
		p.number("peak", r.peak)
		at := "-"
		if !r.peakAt.IsZero() {
			at = r.peakAt.In(p.zone).Format(timeLayout)
		}
		p.line = fmt.Appendf(p.line, "  %-*s", len(timeLayout), at)
	}
	if p.several {
		p.line = fmt.Appendf(p.line, "  %-12s", p.names.of(metriclog.Log{App: r.App, PID: r.PID}.String()))
	}
	p.line = append(append(append(p.line, "  "...), p.names.of(r.Resource)...), '\n')
	_, err := p.Write(p.line)
	return err
}

// number appends a number in its column.
func (p *table) number(title string, v int64) {
	var room [20]byte
	digits := strconv.AppendInt(room[:0], v, 10)
	for range max(width(title)-len(digits), 0) + 2 {
		p.line = append(p.line, ' ')
	}
	p.line = append(p.line, digits...)
}

func (p *table) head() {
	fmt.Fprintf(p, "%-*s", len(timeLayout), "time")
	for _, c := range columns {
		fmt.Fprintf(p, "  %*s", width(c.title), c.title)
	}
	if p.peaks {
		fmt.Fprintf(p, "  %*s  %-*s", width("peak"), "peak", len(timeLayout), "at")
	}
	if p.several {
		fmt.Fprintf(p, "  %-12s", "log")
	}
	fmt.Fprintln(p, "  resource")
}

// width is that of a column of numbers, which has room for its title, and six digits at least.
func width(title string) int { return max(len(title), 6) }

func (p *table) flush() error { return p.Flush() }
