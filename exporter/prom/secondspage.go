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

// secondsPage is a per-second page that is being made.
type secondsPage interface {
	seconds.Sink
	io.WriterTo
	Samples() int
}

// write writes the seconds in [from, open), as many as the limit allows, and returns the second before which it stopped.
func (s *Seconds) write(w http.ResponseWriter, r *http.Request, q query, from, open int64, limit seconds.Limit, began time.Time) (to int64, samples int, err error) {
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
	w.Header().Set("Content-Type", string(format))
	return to, page.Samples(), s.send(w, r, page, format, began)
}

// send writes the page to the client and flushes it.
func (s *Seconds) send(w http.ResponseWriter, r *http.Request, page secondsPage, format expfmt.Format, began time.Time) error {
	out, end := s.zip.Start(w, r)
	counted := &countingWriter{Writer: out}
	_, err := page.WriteTo(counted)
	if format.FormatType() == expfmt.TypeOpenMetrics && err == nil {
		_, err = io.WriteString(counted, text.End)
	}
	if err = errors.Join(err, end()); err == nil {
		err = http.NewResponseController(w).Flush()
	}
	if errors.Is(err, http.ErrNotSupported) {
		err = nil // there is no connection, as in a test
	}
	s.last.record(time.Since(began), page.Samples(), counted.n)
	return err
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
