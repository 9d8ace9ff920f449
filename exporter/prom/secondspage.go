package prom

import (
	"io"
	"net/http"

	"github.com/prometheus/common/expfmt"

	"github.com/windowstat/windowstat/exporter/internal/gather"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/text"
)

// page makes a page of the seconds in [from, open), as many as the limit allows, and returns the second before which it stopped.
// How many lines a histogram by vmrange has is known when it is there: a page that is too large is made again with fewer seconds.
func (s *Seconds) page(r *http.Request, q query, from, open int64, limit seconds.Limit) (c *content, to int64, err error) {
	emit := func(sink seconds.Sink) {
		to = open
		for _, stream := range s.streams {
			to = stream.Emit(&q.Selection, from, to, limit, sink)
		}
	}
	if q.native() {
		page := newProtobufPage()
		emit(page)
		c, err = s.out.render(r, string(expfmt.NewFormat(expfmt.TypeProtoDelim)), nil, page.write)
		return c, to, err
	}
	format := textFormat(r)
	kind := dialect(format)
	if q.ranges {
		format, kind = expfmt.NewFormat(expfmt.TypeTextPlain), text.VictoriaMetrics
	}
	var page *text.Page
	for {
		page = s.out.pages.Get(kind)
		if s.self != nil {
			s.self.SelfMetrics(gather.Page{Page: page})
		}
		emit(page)
		n := s.line.Count(from, to)
		if !q.ranges || n <= 1 {
			break
		}
		length, err := page.WriteTo(io.Discard)
		if err != nil {
			return nil, to, err
		}
		over := max(float64(page.Samples())/float64(limit.Samples), float64(length)/float64(limit.Bytes))
		if over <= 1 {
			break
		}
		limit.Seconds = max(int64(0.9*float64(n)/over), 1)
		s.out.pages.Put(page)
	}
	c, err = s.out.render(r, string(format), page, func(out io.Writer) (_ int, err error) {
		if format.FormatType() == expfmt.TypeOpenMetrics {
			_, err = io.WriteString(out, text.End)
		}
		return 0, err
	})
	return c, to, err
}

// textFormat returns text or OpenMetrics, as the Accept header asks.
func textFormat(r *http.Request) expfmt.Format {
	f := expfmt.NegotiateIncludingOpenMetrics(r.Header)
	switch f.FormatType() {
	case expfmt.TypeTextPlain, expfmt.TypeOpenMetrics:
		return f
	}
	return expfmt.NewFormat(expfmt.TypeTextPlain)
}

// acceptsProtobuf reports whether the Accept header prefers protobuf.
func acceptsProtobuf(r *http.Request) bool {
	return expfmt.NegotiateIncludingOpenMetrics(r.Header).FormatType() == expfmt.TypeProtoDelim
}
