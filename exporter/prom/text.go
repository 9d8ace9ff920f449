package prom

import (
	"bytes"
	"io"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/node"
)

// text is a sink that appends samples as lines of the text format, or of OpenMetrics: a buffer for each metric, because
// the lines of one belong together. It keeps its memory from one scrape to the next.
type text struct {
	openMetrics bool
	families    []*bytes.Buffer // by number of the metric
	pairs       []byte          // the labels, without braces
	stamp       []byte          // the time of the samples, with a space before it; none on an ordinary page
	samples     int
	bounds      [][]byte // le="…" of each classic bucket
}

// pages keeps sinks to use them again.
type pages struct{ sinks sync.Pool }

// get returns an empty sink; put gives it back.
func (p *pages) get(metrics []*metric, openMetrics bool) *text {
	s, _ := p.sinks.Get().(*text)
	if s == nil {
		s = new(text)
	}
	s.reset(metrics, openMetrics)
	return s
}

func (p *pages) put(s *text) { p.sinks.Put(s) }

// reset prepares the sink for a page.
func (s *text) reset(metrics []*metric, openMetrics bool) {
	if s.openMetrics != openMetrics {
		s.openMetrics, s.bounds = openMetrics, nil
	}
	for len(s.families) < len(metrics) {
		s.families = append(s.families, new(bytes.Buffer))
	}
	for _, f := range s.families {
		f.Reset()
	}
	s.stamp, s.samples = s.stamp[:0], 0
}

func (s *text) labels(names, values []string) {
	s.pairs = s.pairs[:0]
	for i, name := range names {
		if i > 0 {
			s.pairs = append(s.pairs, ',')
		}
		s.pairs = append(s.pairs, name...)
		s.pairs = append(s.pairs, `="`...)
		s.pairs = appendEscaped(s.pairs, values[i])
		s.pairs = append(s.pairs, '"')
	}
}

// escaper is for label values: both formats escape the same.
var escaper = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

func appendEscaped(b []byte, v string) []byte {
	if strings.ContainsAny(v, "\\\n\"") {
		v = escaper.Replace(v)
	}
	return append(b, v...)
}

// at gives the samples that follow a time.
func (s *text) at(unix int64) {
	s.stamp = strconv.AppendInt(append(s.stamp[:0], ' '), unix, 10)
	if !s.openMetrics {
		s.stamp = append(s.stamp, "000"...) // milliseconds
	}
}

func (s *text) value(m *metric, v float64) {
	f := s.families[m.no]
	f.Write(s.end(s.number(s.name(f.AvailableBuffer(), m, "", nil), v)))
}

// end appends the end of a line.
func (s *text) end(b []byte) []byte {
	s.samples++
	return append(append(b, s.stamp...), '\n')
}

func (s *text) count() int { return s.samples }

// name appends the beginning of a line: the name and the labels, with one more, such as le="1", if there is one.
func (s *text) name(b []byte, m *metric, suffix string, more []byte) []byte {
	b = append(b, m.name...)
	b = append(b, suffix...)
	if len(s.pairs)+len(more) == 0 {
		return append(b, ' ')
	}
	b = append(b, '{')
	b = append(b, s.pairs...)
	if len(s.pairs) > 0 && len(more) > 0 {
		b = append(b, ',')
	}
	b = append(b, more...)
	return append(b, "} "...)
}

// number appends a value.
func (s *text) number(b []byte, v float64) []byte {
	if i := int64(v); float64(i) == v && i < 1<<53 && i > -1<<53 {
		b = strconv.AppendInt(b, i, 10)
		if s.openMetrics {
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

// infinite is the label of the bucket without a bound.
var infinite = []byte(`le="+Inf"`)

func (s *text) histogram(m *metric, h *node.Histogram, _ time.Time, exemplars []collector.Exemplar) {
	f := s.families[m.no]
	i := 0
	for bound, n := range h.Classic() {
		if i == len(s.bounds) {
			s.bounds = append(s.bounds, s.le(bound))
		}
		b := strconv.AppendInt(s.name(f.AvailableBuffer(), m, "_bucket", s.bounds[i]), n, 10)
		if len(exemplars) > 0 && exemplars[0].RT <= bound {
			b, exemplars = s.exemplar(b, &exemplars[0]), exemplars[1:]
		}
		f.Write(s.end(b))
		i++
	}
	count := h.Count()
	b := strconv.AppendInt(s.name(f.AvailableBuffer(), m, "_bucket", infinite), count, 10)
	if len(exemplars) > 0 {
		b = s.exemplar(b, &exemplars[0])
	}
	b = s.name(s.end(b), m, "_sum", nil)
	b = s.end(s.number(b, h.Sum().Seconds()))
	b = s.name(b, m, "_count", nil)
	f.Write(s.end(strconv.AppendInt(b, count, 10)))
}

// exemplar appends an exemplar to a bucket, where the format has them.
func (s *text) exemplar(b []byte, x *collector.Exemplar) []byte {
	if !s.openMetrics {
		return b
	}
	b = append(append(append(b, " # {"...), traceLabel...), `="`...)
	b = append(appendEscaped(b, x.TraceID), `"} `...)
	b = s.number(b, x.RT.Seconds())
	return strconv.AppendFloat(append(b, ' '), float64(x.At.UnixNano())/1e9, 'g', -1, 64)
}

// le is the label of a bucket. OpenMetrics wants a number with a point in it.
func (s *text) le(bound time.Duration) []byte {
	b := strconv.AppendFloat([]byte(`le="`), bound.Seconds(), 'g', -1, 64)
	if s.openMetrics && !bytes.ContainsAny(b[4:], ".e") {
		b = append(b, ".0"...)
	}
	return append(b, '"')
}

// writeTo writes the page: of each metric that has lines, what it is, and the lines. OpenMetrics wants an end
// after it.
func (s *text) writeTo(w io.Writer, metrics []*metric) error {
	var head []byte
	for _, m := range metrics {
		f := s.families[m.no]
		if f.Len() == 0 {
			continue
		}
		name := m.name
		if s.openMetrics && m.Type == exporter.Counter {
			name = strings.TrimSuffix(name, "_total") // the family's name; its samples have it
		}
		head = append(append(append(append(head[:0], "# HELP "...), name...), ' '), m.Help...)
		head = append(append(append(append(head, "\n# TYPE "...), name...), ' '), m.Type...)
		if _, err := w.Write(append(head, '\n')); err != nil {
			return err
		}
		if _, err := w.Write(f.Bytes()); err != nil {
			return err
		}
	}
	return nil
}
