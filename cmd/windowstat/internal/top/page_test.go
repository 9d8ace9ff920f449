package top

import (
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// An endpoint that sends without end is not read without end, nor one whose short lines take up far more than they have
// bytes. A truncated response is not reported as an invalid format.
func TestTooLarge(t *testing.T) {
	usual := requestTimeout
	requestTimeout = time.Hour
	defer func() { requestTimeout = usual }()
	for _, tc := range []struct {
		line  string
		times int
		want  string
	}{
		{"# a " + strings.Repeat("x", 1000) + "\n", math.MaxInt, "larger than 80 MiB"}, // lines that are read quickly
		{"\n", math.MaxInt, "more than 1000000 lines"},
		{"a", math.MaxInt, "a line of more than 64 KiB"},
		{"a 1\n", 5, "the response was cut off: unexpected EOF"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			part := []byte(strings.Repeat(tc.line, 1000))
			for range tc.times {
				if _, err := w.Write(part); err != nil {
					return
				}
			}
			panic(http.ErrAbortHandler)
		}))
		if a := newReader(t, server.URL).read(t.Context(), inbound); a.err == nil ||
			!strings.Contains(a.err.Error(), tc.want) {
			t.Errorf("%.5q: %v", tc.line, a.err)
		}
		server.Close()
	}
}

// A page that came without types, as some proxies and servers pass it on, has the same numbers.
func TestPageWithoutTypes(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(
			w,
			"windowstat_persecond_run 1 1767323045000\nwindowstat_persecond_pass{resource=\"a\"} 7 1767323045000\n",
		)
	}))
	defer server.Close()
	if got := once(t, server.URL, Options{}); !strings.Contains(got, "\t7\t-\t") {
		t.Errorf("it is shown as\n%s", got)
	}
}
