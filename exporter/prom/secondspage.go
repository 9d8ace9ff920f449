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
	page := s.out.pages.Get(dialect(format))
	if s.self != nil {
		s.self.SelfMetrics(gather.Page{Page: page})
	}
	emit(page)
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
