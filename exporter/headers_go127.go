//go:build go1.27

package exporter

import "net/http"

// maxHeaderCount is several times what scrapers, browsers and the proxies in front of them send.
const maxHeaderCount = 100

// limitHeaders bounds how many headers a request to the pages may have: it is their number that takes memory.
func limitHeaders(s *http.Server) { s.MaxHeaderValueCount = maxHeaderCount }
