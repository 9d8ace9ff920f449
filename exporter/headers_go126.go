//go:build !go1.27

package exporter

import "net/http"

// limitHeaders does nothing: before Go 1.27 net/http bounds the bytes of headers only.
func limitHeaders(*http.Server) {}
