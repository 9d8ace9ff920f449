// Package gzipped compresses HTTP responses with gzip for clients that accept it. It compresses a complete page before
// it is written: middleware such as gzhttp compresses while it writes, so each slow reader would hold a compressor.
package gzipped

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"sync"
)

// Writers is a pool of gzip writers. The zero value is ready to use and safe for concurrent use.
type Writers struct{ writers sync.Pool }

// Start returns a writer that compresses to w, and a function that must be called at the end.
func (c *Writers) Start(w io.Writer) (io.Writer, func() error) {
	z, _ := c.writers.Get().(*gzip.Writer)
	if z == nil {
		z, _ = gzip.NewWriterLevel(nil, gzip.BestSpeed)
	}
	z.Reset(w)
	return z, func() error {
		defer c.writers.Put(z)
		return z.Close()
	}
}

// Accepted reports whether the client accepts gzip.
func Accepted(r *http.Request) bool {
	for _, header := range r.Header["Accept-Encoding"] {
		for coding := range strings.SplitSeq(header, ",") {
			name, q, _ := strings.Cut(strings.TrimSpace(coding), ";")
			zero, refused := strings.CutPrefix(strings.TrimSpace(q), "q=0") // or 0.0, or 0.000
			if strings.EqualFold(strings.TrimSpace(name), "gzip") && !(refused && strings.Trim(zero, ".0") == "") {
				return true
			}
		}
	}
	return false
}
