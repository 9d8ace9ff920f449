package prom

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/prometheus/common/expfmt"

	"github.com/windowstat/windowstat/exporter/internal/gather"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/text"
)

// secondsPage is a page of seconds that is being made.
type secondsPage interface {
	seconds.Sink
	io.WriterTo
	Samples() int
}

// write writes the seconds from from to before open, or the first of them if the limit does not allow more, and returns
// how far it came.
func (s *Seconds) write(w http.ResponseWriter, r *http.Request, q query, from, open int64, limit seconds.Limit, began time.Time) (to int64, samples int, err error) {
	var page secondsPage
	format := textFormat(r)
	if q.native {
		page, format = newPoints(), expfmt.NewFormat(expfmt.TypeProtoDelim)
	} else {
		t := s.pages.Get(dialect(format))
		defer s.pages.Put(t)
		if s.self != nil {
			s.self.Self(gather.Page{Page: t})
		}
		page = t
	}
	to = open
	for _, stream := range s.streams {
		to = stream.Emit(&q.Selection, from, to, limit, page)
	}
	w.Header().Set("Content-Type", string(format))
	return to, page.Samples(), s.send(w, r, page, format, began)
}

// send writes the page to the client, all of it.
func (s *Seconds) send(w http.ResponseWriter, r *http.Request, page secondsPage, format expfmt.Format, began time.Time) error {
	out, end := s.zip.Start(w, r)
	counted := &counter{Writer: out}
	_, err := page.WriteTo(counted)
	if format.FormatType() == expfmt.TypeOpenMetrics && err == nil {
		_, err = io.WriteString(counted, text.End)
	}
	if err = errors.Join(err, end()); err == nil {
		err = http.NewResponseController(w).Flush()
	}
	if errors.Is(err, http.ErrNotSupported) {
		err = nil // not a connection
	}
	s.last.was(time.Since(began), page.Samples(), counted.n)
	return err
}

// textFormat is the format of the answer: text or OpenMetrics, as the client asks.
func textFormat(r *http.Request) expfmt.Format {
	f := expfmt.NegotiateIncludingOpenMetrics(r.Header)
	switch f.FormatType() {
	case expfmt.TypeTextPlain, expfmt.TypeOpenMetrics:
		return f
	}
	return expfmt.NewFormat(expfmt.TypeTextPlain)
}

// acceptsProtobuf reports whether the client takes protobuf.
func acceptsProtobuf(r *http.Request) bool {
	return expfmt.NegotiateIncludingOpenMetrics(r.Header).FormatType() == expfmt.TypeProtoDelim
}
