// Package gzipped zips the bodies of HTTP responses, where the client takes that.
package gzipped

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"sync"
)

// Writers zip responses, and are kept to be used again. The zero value is ready, and safe for concurrent use.
type Writers struct{ writers sync.Pool }

// Start returns where to write a response's body, and what to do at its end.
func (c *Writers) Start(w http.ResponseWriter, r *http.Request) (io.Writer, func() error) {
	if !Accepted(r) {
		return w, func() error { return nil }
	}
	w.Header().Set("Content-Encoding", "gzip")
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

// Accepted reports whether the client takes gzip.
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
