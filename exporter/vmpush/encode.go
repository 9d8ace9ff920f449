package vmpush

import (
	"bytes"
	"compress/gzip"
	"net/http"

	"github.com/windowstat/windowstat/exporter/internal/push"
	"github.com/windowstat/windowstat/exporter/internal/text"
)

// format is the text format, with gzip.
func format() push.Format {
	z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid
	return push.Format{
		Name:   "vm",
		Header: http.Header{"Content-Type": {"text/plain"}, "Content-Encoding": {"gzip"}},
		New:    func() push.Encoder { return newEncoder(z) },
	}
}

// encoder encodes a request as text, with gzip.
type encoder struct {
	*text.Page
	pages text.Pages
	zip   *gzip.Writer // shared by all requests, which are finished one after the other
	out   bytes.Buffer
}

func newEncoder(z *gzip.Writer) *encoder {
	e := &encoder{zip: z}
	e.Page = e.pages.Get(text.VictoriaMetrics)
	return e
}

// Reset implements push.Encoder.
func (e *encoder) Reset() {
	e.pages.Put(e.Page)
	e.Page = e.pages.Get(text.VictoriaMetrics)
}

// Body implements push.Encoder.
func (e *encoder) Body() ([]byte, error) {
	e.out.Reset()
	e.zip.Reset(&e.out)
	if _, err := e.WriteTo(e.zip); err != nil {
		return nil, err
	}
	if err := e.zip.Close(); err != nil {
		return nil, err
	}
	return e.out.Bytes(), nil
}
