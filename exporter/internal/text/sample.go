package text

import (
	"bytes"
	"math"
	"strconv"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/node"
)

// Plain is a sample without a timestamp.
func (p *Page) Plain(v float64) {
	b := append(p.current.AvailableBuffer(), p.line...)
	p.current.Write(p.end(p.number(b, v), noTime))
}

// Value implements seconds.Sink.
func (p *Page) Value(unix int64, v float64) {
	b := append(p.current.AvailableBuffer(), p.line...)
	p.current.Write(p.end(p.number(b, v), unix))
}

// noTime is the timestamp of samples without one.
const noTime = math.MinInt64

// end appends the end of a line.
func (p *Page) end(b []byte, unix int64) []byte {
	p.samples++
	if unix != noTime {
		b = strconv.AppendInt(append(b, ' '), unix, 10)
		if p.format != OpenMetrics {
			b = append(b, "000"...) // milliseconds
		}
	}
	return append(b, '\n')
}

// number appends a value.
func (p *Page) number(b []byte, v float64) []byte {
	if i := int64(v); float64(i) == v && i < 1<<53 && i > -1<<53 {
		b = strconv.AppendInt(b, i, 10)
		if p.format == OpenMetrics {
			b = append(b, ".0"...)
		}
		return b
	}
	switch {
	case math.IsNaN(v):
		return append(b, "NaN"...)
	case math.IsInf(v, 1):
		return append(b, "+Inf"...)
	case math.IsInf(v, -1):
		return append(b, "-Inf"...)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}

// Histogram implements seconds.Sink.
func (p *Page) Histogram(unix int64, h *node.Histogram) { p.histogram(unix, h, nil) }

// PlainHistogram is a histogram without a timestamp, with exemplars, the fastest first, if the format has them.
func (p *Page) PlainHistogram(h *node.Histogram, exemplars []collector.Exemplar) {
	p.histogram(noTime, h, exemplars)
}

func (p *Page) histogram(unix int64, h *node.Histogram, exemplars []collector.Exemplar) {
	f := p.current
	p.counts = h.AppendClassic(p.counts[:0])
	count := p.counts[len(p.counts)-1]
	if p.format == VictoriaMetrics {
		p.ranges(unix, h)
	} else {
		if len(p.bounds) != len(p.counts) {
			p.bounds = p.les(h)
		}
		for i, n := range p.counts {
			b := strconv.AppendInt(p.head(f.AvailableBuffer(), "_bucket", p.bounds[i].label), n, 10)
			if len(exemplars) > 0 && exemplars[0].RT <= p.bounds[i].upper {
				b, exemplars = p.exemplar(b, &exemplars[0]), exemplars[1:]
			}
			f.Write(p.end(b, unix))
		}
	}
	b := p.number(p.head(f.AvailableBuffer(), "_sum", nil), h.Sum().Seconds())
	b = p.head(p.end(b, unix), "_count", nil)
	f.Write(p.end(strconv.AppendInt(b, count, 10), unix))
}

// bound is an upper bound of a classic bucket.
type bound struct {
	upper time.Duration
	label []byte // le="…"
}

// les returns the bounds of a histogram, +Inf last. They are the same for all histograms of a page.
func (p *Page) les(h *node.Histogram) (all []bound) {
	for upper := range h.Classic() {
		all = append(all, bound{upper, p.le(upper)})
	}
	return append(all, bound{math.MaxInt64, []byte(`le="+Inf"`)})
}

// le returns the label of a bucket. OpenMetrics requires a decimal point.
func (p *Page) le(bound time.Duration) []byte {
	b := strconv.AppendFloat([]byte(`le="`), bound.Seconds(), 'g', -1, 64)
	if p.format == OpenMetrics && !bytes.ContainsAny(b[4:], ".e") {
		b = append(b, ".0"...)
	}
	return append(b, '"')
}

// ranges appends the non-empty buckets of the native histogram in VictoriaMetrics' format: each with its own count and both
// bounds. Response times of 0 have a range of their own.
func (p *Page) ranges(unix int64, h *node.Histogram) {
	f := p.current
	var room [64]byte
	bucket := func(low, high float64, n int64) {
		more := strconv.AppendFloat(append(room[:0], `vmrange="`...), low, 'e', 3, 64)
		more = strconv.AppendFloat(append(more, "..."...), high, 'e', 3, 64)
		more = append(more, '"')
		f.Write(p.end(strconv.AppendInt(p.head(f.AvailableBuffer(), "_bucket", more), n, 10), unix))
	}
	if n := h.Zero(); n > 0 {
		bucket(0, node.NativeBound(zeroRange), n)
	}
	for i, n := range h.Native() {
		bucket(node.NativeBound(i-1), node.NativeBound(i), n)
	}
}

// zeroRange is the native bucket whose bound ends the range of response times of 0: it is below a nanosecond.
const zeroRange = -240

// exemplar appends an exemplar to a bucket, if the format has them.
func (p *Page) exemplar(b []byte, x *collector.Exemplar) []byte {
	if p.format != OpenMetrics {
		return b
	}
	b = append(append(append(b, " # {"...), TraceLabel...), `="`...)
	b = append(appendEscaped(b, x.TraceID), `"} `...)
	b = p.number(b, x.RT.Seconds())
	return strconv.AppendFloat(append(b, ' '), float64(x.At.UnixNano())/1e9, 'g', -1, 64)
}

// TraceLabel is the label of an exemplar's trace, as in Grafana.
const TraceLabel = "trace_id"
