package push

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestAttempt checks the verdict of an attempt for each response of a real HTTP server, for a new request and for a
// request that may have arrived before.
func TestAttempt(t *testing.T) {
	const later = 90 * time.Second // longer than the sender waits
	for _, tc := range []struct {
		code   int
		header []string
		body   string
		first  verdict
		again  verdict
		after  time.Duration
	}{
		{code: 200, first: accepted, again: accepted},
		{code: 204, first: accepted, again: accepted},
		{code: 202, body: "queued", first: accepted, again: accepted},
		{
			code: 200, header: []string{"Content-Type", "text/html"}, body: "<html>", first: unreachable,
			again: unreachable,
		},
		{code: 301, header: []string{"Location", "/elsewhere"}, first: unreachable, again: unreachable},
		{code: 307, header: []string{"Location", "/elsewhere"}, first: unreachable, again: unreachable},
		{code: 308, header: []string{"Location", "/elsewhere"}, first: unreachable, again: unreachable},
		{code: 400, body: "out of order sample", first: refused, again: unconfirmed},
		{code: 400, body: "duplicate sample for timestamp", first: refused, again: unconfirmed},
		{code: 400, body: "out of bounds", first: refused, again: refused},
		{code: 401, first: unreachable, again: unreachable},
		{code: 403, first: unreachable, again: unreachable},
		{code: 404, first: unreachable, again: unreachable},
		{code: 405, first: unreachable, again: unreachable},
		{code: 407, first: unreachable, again: unreachable},
		{code: 408, first: doubtful, again: doubtful},
		{code: 409, body: "out of order sample", first: refused, again: unconfirmed},
		{code: 413, first: refused, again: refused},
		{code: 415, first: refused, again: refused},
		{code: 422, first: refused, again: refused},
		{code: 429},
		{code: 429, header: []string{"Retry-After", "7"}, after: 7 * time.Second},
		{code: 429, header: []string{"Retry-After", "3600"}, after: time.Minute},
		{code: 429, header: []string{"Retry-After", "-1"}},
		{code: 429, header: []string{"Retry-After", "soon"}},
		{
			code: 429, header: []string{"Retry-After", time.Now().Add(later).UTC().Format(http.TimeFormat)},
			after: time.Minute,
		},
		{code: 429, header: []string{"Retry-After", "Mon, 02 Jan 2006 15:04:05 GMT"}},
		{code: 500, first: doubtful, again: doubtful},
		{code: 500, body: `invalid temporality and type combination for metric "m"`, first: refused, again: refused},
		{
			code: 500, header: []string{"Content-Type", "text/html"}, body: "invalid temporality", first: doubtful,
			again: doubtful,
		},
		{code: 503, first: doubtful, again: doubtful, header: []string{"Retry-After", "5"}, after: 5 * time.Second},
		{code: 504, first: doubtful, again: doubtful},
	} {
		t.Run(fmt.Sprint(tc.code, tc.header, tc.body), func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				for i := 0; i < len(tc.header); i += 2 {
					w.Header().Set(tc.header[i], tc.header[i+1])
				}
				w.WriteHeader(tc.code)
				_, _ = io.WriteString(w, tc.body)
			}))
			defer server.Close()
			o := Options{URL: server.URL, Logger: slog.New(slog.DiscardHandler)}
			o.defaults()
			p := newSender(o, maxWait)
			for again, want := range map[bool]verdict{false: tc.first, true: tc.again} {
				got, after, err := p.attempt(
					t.Context(),
					&request{format: o.Format, body: []byte("x"), samples: 1, doubt: again},
				)
				if got != want || after != tc.after {
					t.Errorf("sent before %t: verdict %d, want %d, after %v: %v", again, got, want, after, err)
				}
			}
		})
	}
}
