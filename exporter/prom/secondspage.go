package prom

import (
	"io"
	"net/http"

	"github.com/prometheus/common/expfmt"

	"github.com/windowstat/windowstat/exporter/internal/gather"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/text"
)

// secondsPage is a per-second page that is being made.
type secondsPage interface {
	seconds.Sink
	io.WriterTo
	Samples() int
}

// page makes a page of the seconds in [from, open), as many as the limit allows, and returns the second before which it stopped.
func (s *Seconds) page(r *http.Request, q query, from, open int64, limit seconds.Limit) (c *content, to int64, err error) {
	var page secondsPage
	format := textFormat(r)
	if q.native {
		page, format = newProtobufPage(), expfmt.NewFormat(expfmt.TypeProtoDelim)
	} else {
		t := s.pages.Get(dialect(format))
		defer s.pages.Put(t)
		if s.self != nil {
			s.self.SelfMetrics(gather.Page{Page: t})
		}
		page = t
	}
	to = open
	for _, stream := range s.streams {
		to = stream.Emit(&q.Selection, from, to, limit, page)
	}
	c, err = s.out.render(r, string(format), func(out io.Writer) (int, error) {
		_, err := page.WriteTo(out)
		if format.FormatType() == expfmt.TypeOpenMetrics && err == nil {
			_, err = io.WriteString(out, text.End)
		}
		return page.Samples(), err
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
