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
	stamp   stamp
	several bool // logs; then it says which
	names   names
	begun   bool
	line    []byte
}

// columns are those of numbers, which have room for their titles, and six digits at least.
var columns = []struct {
	title string
	of    func(*metriclog.Row) int64
}{
	{"pass", func(r *metriclog.Row) int64 { return r.Pass }},
	{"block", func(r *metriclog.Row) int64 { return r.Block }},
	{"complete", func(r *metriclog.Row) int64 { return r.Success }},
	{"exception", func(r *metriclog.Row) int64 { return r.Exception }},
	{"occupied", func(r *metriclog.Row) int64 { return r.OccupiedPass }},
	{"in flight", func(r *metriclog.Row) int64 { return r.Concurrency }},
	{"rt ms", func(r *metriclog.Row) int64 { return r.RT.Milliseconds() }},
}

// timeLayout can be given to --from and --to.
const timeLayout = "2006-01-02 15:04:05-07:00"

func newTable(w io.Writer, zone *time.Location, several bool) printer {
	return &table{Writer: bufio.NewWriter(w), stamp: stamp{layout: timeLayout, zone: zone}, names: names{shown: visible}, several: several}
}

func (p *table) print(r *metriclog.Row) error {
	if !p.begun {
		p.begun = true
		p.head()
	}
	p.line = append(p.line[:0], p.stamp.of(r.Start)...)
	for _, c := range columns {
		var room [20]byte
		digits := strconv.AppendInt(room[:0], c.of(r), 10)
		for range max(width(c.title)-len(digits), 0) + 2 {
			p.line = append(p.line, ' ')
		}
		p.line = append(p.line, digits...)
	}
	if p.several {
		p.line = fmt.Appendf(p.line, "  %-12s", p.names.of(metriclog.Log{App: r.App, PID: r.PID}.String()))
	}
	p.line = append(append(append(p.line, "  "...), p.names.of(r.Resource)...), '\n')
	_, err := p.Write(p.line)
	return err
}

func (p *table) head() {
	fmt.Fprintf(p, "%-*s", len(timeLayout), "time")
	for _, c := range columns {
		fmt.Fprintf(p, "  %*s", width(c.title), c.title)
	}
	if p.several {
		fmt.Fprintf(p, "  %-12s", "log")
	}
	fmt.Fprintln(p, "  resource")
}

func width(title string) int { return max(len(title), 6) }

func (p *table) flush() error { return p.Flush() }
