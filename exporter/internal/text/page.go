// Package text encodes Prometheus's text format, OpenMetrics and VictoriaMetrics' dialect by appending to buffers.
package text

import (
	"bytes"
	"io"
	"strings"
	"sync"

	"github.com/windowstat/windowstat/exporter/internal/table"
)

// Format is a dialect of the text format.
type Format int

// The dialects.
const (
	Prometheus      Format = iota // 0.0.4
	OpenMetrics                   // 1.0
	VictoriaMetrics               // Prometheus, with histograms by vmrange
)

// Page is a page in the making. It has a buffer for each family, because the lines of a family must be consecutive. It
// implements seconds.Sink. Its memory is reused, see [Pages]. It is not safe for concurrent use.
type Page struct {
	format   Format
	families map[*table.Family]int
	buffers  []buffer // in the order of the page
	used     int      // of them

	pairs   []byte // the labels, without braces
	current *buffer
	line    []byte  // start of the lines of the present series
	bounds  []bound // of the classic buckets
	counts  []int64 // of them
	samples int
}

// buffer has the lines of a family.
type buffer struct {
	family    *table.Family
	described bool // HELP and TYPE were written
	bytes.Buffer
}

// Pages is a pool of pages. The zero value is ready, and safe for concurrent use.
type Pages struct{ pool sync.Pool }

// Get returns an empty page. The families given come first, in this order; others follow in the order of their first series.
func (p *Pages) Get(f Format, families ...*table.Family) *Page {
	page, _ := p.pool.Get().(*Page)
	if page == nil {
		page = &Page{families: map[*table.Family]int{}}
	}
	page.reset(f)
	for _, family := range families {
		page.open(family)
	}
	return page
}

// Put returns a page to the pool. It must not be used any more.
func (p *Pages) Put(page *Page) { p.pool.Put(page) }

func (p *Page) reset(f Format) {
	if p.format != f {
		p.format, p.bounds = f, nil
	}
	clear(p.families)
	p.used, p.samples = 0, 0
}

// open returns the buffer of a family.
func (p *Page) open(f *table.Family) *buffer {
	i, ok := p.families[f]
	if !ok {
		i = p.used
		if p.used++; p.used > len(p.buffers) {
			p.buffers = append(p.buffers, buffer{})
		}
		p.families[f] = i
		p.buffers[i].family, p.buffers[i].described = f, false
		p.buffers[i].Reset()
	}
	return &p.buffers[i]
}

// Samples returns the number of samples.
func (p *Page) Samples() int { return p.samples }

// Labels sets the labels of the series that follow.
func (p *Page) Labels(names, values []string) {
	p.pairs = p.pairs[:0]
	for i, name := range names {
		if i > 0 {
			p.pairs = append(p.pairs, ',')
		}
		p.pairs = append(p.pairs, name...)
		p.pairs = append(p.pairs, `="`...)
		p.pairs = appendEscaped(p.pairs, values[i])
		p.pairs = append(p.pairs, '"')
	}
}

// escaper escapes label values; all formats escape the same.
var escaper = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

func appendEscaped(b []byte, v string) []byte {
	if strings.ContainsAny(v, "\\\n\"") {
		v = escaper.Replace(v)
	}
	return append(b, v...)
}

// Metric starts a series of a family with the present labels.
func (p *Page) Metric(f *table.Family) {
	p.current = p.open(f)
	p.line = p.head(p.line[:0], "", nil)
}

// Series implements seconds.Sink.
func (p *Page) Series(f *table.Family, names, values []string) {
	p.Labels(names, values)
	p.Metric(f)
}

// head appends the start of a line: the name and the labels, with one more, such as le="1", if more is not empty.
func (p *Page) head(b []byte, suffix string, more []byte) []byte {
	b = append(b, p.current.family.Name...)
	b = append(b, suffix...)
	if len(p.pairs)+len(more) == 0 {
		return append(b, ' ')
	}
	b = append(b, '{')
	b = append(b, p.pairs...)
	if len(p.pairs) > 0 && len(more) > 0 {
		b = append(b, ',')
	}
	b = append(b, more...)
	return append(b, "} "...)
}

// WriteTo writes HELP, TYPE and the lines of each family that has lines. OpenMetrics needs [End] after the page.
func (p *Page) WriteTo(w io.Writer) (n int64, err error) {
	var room [512]byte
	for i := range p.buffers[:p.used] {
		b := &p.buffers[i]
		if b.Len() == 0 {
			continue
		}
		if !b.described {
			b.described = true
			m, err := w.Write(p.appendMetadata(room[:0], b.family))
			if n += int64(m); err != nil {
				return n, err
			}
		}
		m, err := w.Write(b.Bytes())
		if n += int64(m); err != nil {
			return n, err
		}
	}
	return n, nil
}

// appendMetadata appends the HELP and TYPE of a family.
func (p *Page) appendMetadata(b []byte, f *table.Family) []byte {
	name := f.Name
	if p.format == OpenMetrics && f.Type == table.Counter {
		name = strings.TrimSuffix(name, "_total") // only samples have the suffix
	}
	b = append(append(append(append(b, "# HELP "...), name...), ' '), f.Help...)
	b = append(append(append(append(b, "\n# TYPE "...), name...), ' '), f.Type...)
	return append(b, '\n')
}

// Forget drops the lines that were written, so that a page of one family can be written piece by piece.
func (p *Page) Forget() {
	for i := range p.buffers[:p.used] {
		p.buffers[i].Reset()
	}
	p.samples = 0
}

// End ends an OpenMetrics page.
const End = "# EOF\n"
