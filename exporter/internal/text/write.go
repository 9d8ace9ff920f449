package text

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// printer formats a page.
type printer struct {
	*Page
	to     io.Writer
	n      int64
	err    error
	line   []byte // the start of a line
	out    []byte // not written yet
	stamps [64]stamp
}

// stamp is the formatted end of the lines of one second.
type stamp struct {
	unix int64
	text []byte
}

// piece is the approximate number of bytes of a write.
const piece = 64 << 10

func (p *printer) write() {
	if p.err == nil {
		var n int
		n, p.err = p.to.Write(p.out)
		p.n += int64(n)
	}
	p.out = p.out[:0]
}

// WriteTo writes HELP, TYPE and the lines of each family that has samples. An OpenMetrics page must be followed by
// [End].
func (p *Page) WriteTo(w io.Writer) (n int64, err error) {
	to := &printer{Page: p, to: w, out: make([]byte, 0, piece+piece/8)}
	for _, c := range p.columns[:p.used] {
		if len(c.samples) == 0 {
			continue
		}
		to.metadata(c.family)
		if t := c.family.Type; t == table.Histogram || t == table.GaugeHistogram {
			to.histograms(c)
		} else {
			to.values(c)
		}
		if to.err != nil {
			break
		}
	}
	to.write()
	return to.n, to.err
}

// values writes the lines of counters or gauges.
func (p *printer) values(c *column) {
	at, om := 0, p.format == OpenMetrics
	out := p.out
	beginning, inBraces := p.beginning(c.family.Name)
	for _, s := range c.series {
		p.line = appendLabels(append(p.line[:0], beginning...), inBraces, p.labels[s.labels:s.labelsEnd])
		for ; at < int(s.end); at++ {
			x := &c.samples[at]
			out = append(number(append(out, p.line...), x.v, om), p.stamp(x.unix)...)
			if len(out) >= piece {
				p.out = out
				p.write()
				out = p.out
			}
		}
	}
	p.out = out
}

// histograms writes the lines of histograms.
func (p *printer) histograms(c *column) {
	at, counts, exemplars := 0, c.counts, c.exemplars
	for _, s := range c.series {
		labels := p.labels[s.labels:s.labelsEnd]
		p.line = append(append(p.line[:0], c.family.Name...), "_bucket"...)
		if len(labels) > 1 {
			p.line = append(append(p.line, labels[:len(labels)-2]...), ',')
		} else {
			p.line = append(p.line, '{')
		}
		for ; at < int(s.end); at++ {
			x, n := &c.samples[at], int(counts[0])
			of := exemplars
			for len(exemplars) > 0 && exemplars[0].histogram == at {
				exemplars = exemplars[1:]
			}
			end := p.stamp(x.unix)
			if p.format == VictoriaMetrics {
				p.ranges(counts[1:n], end)
			} else {
				p.buckets(counts[1:n+1], end, of[:len(of)-len(exemplars)])
			}
			p.out = append(append(append(p.out, c.family.Name...), "_sum"...), labels...)
			p.out = append(number(p.out, x.v, p.format == OpenMetrics), end...)
			p.out = append(append(append(p.out, c.family.Name...), "_count"...), labels...)
			p.out = append(strconv.AppendInt(p.out, counts[n], 10), end...)
			if counts = counts[n+1:]; len(p.out) >= piece {
				p.write()
			}
		}
	}
}

// buckets appends the classic buckets of a histogram with their exemplars.
func (p *printer) buckets(counts []int64, end []byte, exemplars []exemplar) {
	out := p.out
	for i, n := range counts {
		bound := &p.bounds[i]
		out = strconv.AppendInt(append(append(out, p.line...), bound.label...), n, 10)
		if len(exemplars) > 0 && exemplars[0].RT <= bound.upper {
			out, exemplars = appendExemplar(out, &exemplars[0]), exemplars[1:]
		}
		out = append(out, end...)
	}
	p.out = out
}

// ranges appends the non-empty buckets of the native histogram in VictoriaMetrics' format: each with its own count and
// both bounds. Response times of 0 have a separate range.
func (p *printer) ranges(counts []int64, end []byte) {
	for ; len(counts) > 0; counts = counts[2:] {
		var low float64
		if i := int(counts[0]); i > zeroRange {
			low = node.NativeBound(i - 1)
		}
		b := append(append(p.out, p.line...), `vmrange="`...)
		b = append(strconv.AppendFloat(b, low, 'e', 3, 64), "..."...)
		b = append(strconv.AppendFloat(b, node.NativeBound(int(counts[0])), 'e', 3, 64), `"} `...)
		p.out = append(strconv.AppendInt(b, counts[1], 10), end...)
	}
}

// zeroRange is the native bucket whose bound ends the range of response times of 0: the bound is below a nanosecond.
const zeroRange = -240

// appendExemplar appends an exemplar to a bucket.
func appendExemplar(b []byte, x *exemplar) []byte {
	b = append(append(append(b, " # {"...), TraceLabel...), `="`...)
	b = append(appendEscaped(b, x.TraceID), `"} `...)
	b = number(b, x.RT.Seconds(), true)
	return strconv.AppendFloat(append(b, ' '), float64(x.At.UnixNano())/1e9, 'g', -1, 64)
}

// TraceLabel is the label of an exemplar's trace, as in Grafana.
const TraceLabel = "trace_id"

// stamp returns the end of a line. It formats the timestamp for the first line of a second, and reuses it for other
// series.
func (p *printer) stamp(unix int64) []byte {
	s := &p.stamps[uint64(unix)%uint64(len(p.stamps))]
	if s.unix == unix && s.text != nil {
		return s.text
	}
	s.unix, s.text = unix, s.text[:0]
	if unix != noTime {
		s.text = strconv.AppendInt(append(s.text, ' '), unix, 10)
		if p.format != OpenMetrics {
			s.text = append(s.text, "000"...) // milliseconds
		}
	}
	s.text = append(s.text, '\n')
	return s.text
}

// classicBounds returns the bounds of a histogram, +Inf last. They are equal for all histograms of a page.
func (p *Page) classicBounds(h *node.Histogram) (all []bound) {
	for upper := range h.Classic() {
		label := strconv.AppendFloat([]byte(`le="`), upper.Seconds(), 'g', -1, 64)
		if p.format == OpenMetrics && !bytes.ContainsAny(label[4:], ".e") {
			label = append(label, ".0"...) // OpenMetrics requires a decimal point
		}
		all = append(all, bound{upper, append(label, `"} `...)})
	}
	return append(all, bound{math.MaxInt64, []byte(`le="+Inf"} `)})
}

// metadata appends the HELP and TYPE of a family, and in OpenMetrics its UNIT. A UNIT must be the end of the name.
func (p *printer) metadata(f *table.Family) {
	name := f.Name
	if p.format == OpenMetrics && f.Type == table.Counter {
		name = strings.TrimSuffix(name, "_total") // only the names of samples have the suffix
	}
	help := helpEscaper
	if p.format == OpenMetrics {
		help = escaper
	}
	shown := p.appendMetric(nil, name)
	p.out = fmt.Appendf(p.out, "# HELP %s %s\n# TYPE %s %s\n", shown, help.Replace(f.Help), shown, f.Type)
	if p.format == OpenMetrics && f.Unit != "" && strings.HasSuffix(name, "_"+f.Unit) {
		p.out = fmt.Appendf(p.out, "# UNIT %s %s\n", name, f.Unit)
	}
}

// helpEscaper escapes a HELP text in the text format. OpenMetrics escapes it like label values.
var helpEscaper = strings.NewReplacer(`\`, `\\`, "\n", `\n`)

// End ends an OpenMetrics page.
const End = "# EOF\n"

// number appends a value. If float is set, integers get a decimal point.
func number(b []byte, v float64, float bool) []byte {
	if i := int64(v); float64(i) == v && i < 1<<53 && i > -1<<53 {
		b = strconv.AppendInt(b, i, 10)
		if float {
			b = append(b, ".0"...)
		}
		return b
	}
	// Nearly all other values are times in whole nanoseconds. With at most 15 digits, their decimal form is the
	// shortest that parses to the same value, so no search is needed.
	if v >= 1e-4 && v < 1e6 {
		if ns := int64(v*1e9 + 0.5); float64(ns)/1e9 == v {
			b = strconv.AppendInt(b, ns/1e9, 10)
			point := len(b)
			b = strconv.AppendInt(b, 1e9+ns%1e9, 10)
			b[point] = '.'
			for b[len(b)-1] == '0' {
				b = b[:len(b)-1]
			}
			return b
		}
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64) // also NaN, +Inf and -Inf, which both formats spell in this way
}
