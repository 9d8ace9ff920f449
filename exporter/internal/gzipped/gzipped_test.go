package gzipped

import (
	"net/http"
	"testing"
)

// A client that rejects gzip, in any spelling, does not get it.
func TestAccepted(t *testing.T) {
	for header, want := range map[string]bool{
		"": false, "br": false, "gzip;q=0": false, "gzip; q=0.0": false, "deflate, gzip;q=0.000": false,
		"gzip": true, "br, GZIP": true, "gzip;q=0.1": true, "gzip ; q=1": true, "deflate,gzip;q=0.05": true,
	} {
		r := &http.Request{Header: http.Header{"Accept-Encoding": {header}}}
		if got := Accepted(r); got != want {
			t.Errorf("%q: %v", header, got)
		}
	}
}
