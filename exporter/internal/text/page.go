// Package text encodes Prometheus' text format, OpenMetrics 1.0, and VictoriaMetrics' dialect. It does not encode
// OpenMetrics 2.0: prometheus/common 0.72.1 rejects it, and Prometheus 3.16 parses it only with an experimental
// feature.
//
// A [Page] collects samples by family. The lines of a family must be consecutive, but streams emit series by series, so
// nothing can be written before the last sample arrives. The page stores numbers, which take a quarter of the memory of
// their text, and formats the text piece by piece while it is written. [Pages] pools pages that are as large as the
// last one, so a scrape of many resources allocates little.
package text

import (
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// Format is a dialect of the text format.
type Format int

// The dialects.
const (
	Prometheus      Format = iota // 0.0.4
	OpenMetrics                   // 1.0
	VictoriaMetrics               // Prometheus, with histograms by vmrange
)

// Page collects the samples of a page, separately for each family, because the lines of a family must be consecutive.
// It implements seconds.Sink and gather.Sink. [Pages] reuses its memory. A Page is not safe for concurrent use, but
// several goroutines may write a complete page concurrently.
type Page struct {
	format   Format
	quotes   bool // see QuoteNames
	byFamily map[*table.Family]*column
	columns  []*column // in the order of the page
	used     int       // columns in use
	samples  int

	labels  []byte   // labels of all series, concatenated: `{resource="a"} `, or a space
	last    []string // names and values of the current labels
	from    int      // offset of the current labels in labels
	current *column

	bounds []bound // upper bounds of the classic buckets, +Inf last
}

// column holds the samples of a family.
type column struct {
	family    *table.Family
	series    []series
	samples   []sample
	counts    []int64 // of the histograms: for each the number of its counts, then the counts
	exemplars []exemplar
}

// series holds the labels of a series, and the end of its samples in the column. Its samples begin at the end of the
// previous series.
type series struct{ labels, labelsEnd, end uint32 }

// sample is a value, or the sum of a histogram.
type sample struct {
	unix int64
	v    float64
}

// exemplar is an exemplar of the histogram with the given number.
type exemplar struct {
	histogram int
	collector.Exemplar
}

// bound is the upper bound of a classic bucket.
type bound struct {
	upper time.Duration
	label []byte // le="…"
}

// noTime marks a sample without a timestamp.
const noTime = math.MinInt64

// Pages is a pool of pages. The zero value is ready to use and safe for concurrent use.
type Pages struct {
	pool sync.Pool // emptied by garbage collections

	mu         sync.Mutex
	capacities []capacity // of the last page, to allocate the next one at its final size
}

// capacity holds the lengths of the slices of a column.
type capacity struct{ series, samples, counts int }

// Get returns an empty page. The given families come first, in this order; other families follow in the order of their
// first series.
func (p *Pages) Get(f Format, families ...*table.Family) *Page {
	page, _ := p.pool.Get().(*Page)
	if page == nil {
		page = p.allocate()
	}
	if page.format != f {
		page.format, page.bounds = f, nil
	}
	page.quotes = false
	page.Reset()
	for _, family := range families {
		page.open(family)
	}
	return page
}

// allocate returns a new page with the capacity of the last one plus a sixteenth.
func (p *Pages) allocate() *Page {
	page := &Page{byFamily: map[*table.Family]*column{}}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.capacities {
		page.columns = append(page.columns, &column{
			series:  make([]series, 0, n.series+n.series/16),
			samples: make([]sample, 0, n.samples+n.samples/16),
			counts:  make([]int64, 0, n.counts+n.counts/16),
		})
	}
	return page
}

// Put returns a page to the pool. The caller must not use it afterwards.
func (p *Pages) Put(page *Page) {
	p.mu.Lock()
	p.capacities = p.capacities[:0]
	for _, c := range page.columns[:page.used] {
		p.capacities = append(p.capacities, capacity{len(c.series), len(c.samples), len(c.counts)})
	}
	p.mu.Unlock()
	p.pool.Put(page)
}

// open returns the column of a family, and adds it if necessary.
func (p *Page) open(f *table.Family) *column {
	c := p.byFamily[f]
	if c == nil {
		if p.used == len(p.columns) {
			p.columns = append(p.columns, new(column))
		}
		c = p.columns[p.used]
		p.used++
		p.byFamily[f] = c
		clear(c.exemplars)
		c.family, c.series, c.samples = f, c.series[:0], c.samples[:0]
		c.counts, c.exemplars = c.counts[:0], c.exemplars[:0]
	}
	return c
}

// Reset removes all samples and families.
func (p *Page) Reset() {
	clear(p.byFamily)
	p.used, p.labels, p.last, p.from, p.samples = 0, append(p.labels[:0], ' '), p.last[:0], 0, 0
}

// Size returns the approximate memory of the page in bytes.
func (p *Page) Size() int {
	n := cap(p.labels)
	for _, c := range p.columns[:p.used] {
		n += 12*cap(c.series) + 16*cap(c.samples) + 8*cap(c.counts)
	}
	return n
}

// Samples returns the number of samples.
func (p *Page) Samples() int { return p.samples }

// Labels implements gather.Sink. It ignores created timestamps: the text format has none, and in OpenMetrics they are
// separate lines, which a server stores as separate series unless it is configured to use them. client_golang omits
// them as well.
func (p *Page) Labels(names, values []string, _ time.Time) {
	n := len(names)
	if len(p.last) == 2*n && slices.Equal(p.last[:n], names) && slices.Equal(p.last[n:], values) {
		return
	}
	p.last = append(append(p.last[:0], names...), values...)
	p.from = len(p.labels)
	for i, name := range names {
		p.labels = append(p.appendLabel(append(p.labels, "{,"[min(i, 1)]), name), `="`...)
		p.labels = append(appendEscaped(p.labels, values[i]), '"')
	}
	if n > 0 {
		p.labels = append(p.labels, '}')
	}
	p.labels = append(p.labels, ' ')
}

// escaper escapes label values, which all formats escape in the same way.
var escaper = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

func appendEscaped(b []byte, v string) []byte {
	if strings.ContainsAny(v, "\\\n\"") {
		v = escaper.Replace(v)
	}
	return append(b, v...)
}

// start starts a series of f with the current labels.
func (p *Page) start(f *table.Family) {
	c := p.open(f)
	n := uint32(len(c.samples))
	c.series = append(c.series, series{uint32(p.from), uint32(len(p.labels)), n})
	p.current = c
}

// Series implements seconds.Sink.
func (p *Page) Series(f *table.Family, names, values []string) {
	p.Labels(names, values, time.Time{})
	p.start(f)
}

// Sample implements gather.Sink.
func (p *Page) Sample(f *table.Family, v float64) {
	p.start(f)
	p.Value(noTime, v)
}

// Distribution implements gather.Sink. Only OpenMetrics has exemplars.
func (p *Page) Distribution(f *table.Family, h *node.Histogram, exemplars []collector.Exemplar) {
	p.start(f)
	p.histogram(noTime, h, exemplars)
}

// Value implements seconds.Sink.
func (p *Page) Value(unix int64, v float64) {
	c := p.current
	c.samples = append(c.samples, sample{unix, v})
	c.series[len(c.series)-1].end++
	p.samples++
}

// Histogram implements seconds.Sink.
func (p *Page) Histogram(unix int64, h *node.Histogram) { p.histogram(unix, h, nil) }

func (p *Page) histogram(unix int64, h *node.Histogram, exemplars []collector.Exemplar) {
	c, at := p.current, len(p.current.counts)
	c.counts = append(c.counts, 0)
	if p.format == VictoriaMetrics {
		if n := h.Zero(); n > 0 {
			c.counts = append(c.counts, zeroRange, n)
		}
		for i, n := range h.Native() {
			c.counts = append(c.counts, int64(i), n)
		}
		p.samples += (len(c.counts) - at) / 2
	} else {
		for _, n := range h.Classic() {
			c.counts = append(c.counts, n)
		}
		if buckets := len(c.counts) - at; len(p.bounds) != buckets {
			p.bounds = p.classicBounds(h)
		}
		p.samples += len(p.bounds)
	}
	c.counts = append(c.counts, h.Count())
	c.counts[at] = int64(len(c.counts) - at - 1)
	if p.format == OpenMetrics {
		for _, x := range exemplars {
			c.exemplars = append(c.exemplars, exemplar{len(c.samples), x})
		}
	}
	p.Value(unix, h.Sum().Seconds())
	p.samples++ // the count
}
