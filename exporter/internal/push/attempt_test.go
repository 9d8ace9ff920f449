package push

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/common/config"
)

// What an attempt makes of the answers of a real HTTP server: alone, and of a request that may have arrived before.
func TestAttempt(t *testing.T) {
	const later = 90 * time.Second // more than is waited for
	for _, tc := range []struct {
		code   int
		header []string
		body   string
		first  verdict
		again  verdict
		config bool
		after  time.Duration
	}{
		{code: 200, first: accepted, again: accepted},
		{code: 204, first: accepted, again: accepted},
		{code: 202, body: "queued", first: accepted, again: accepted},
		{code: 200, header: []string{"Content-Type", "text/html"}, body: "<html>", config: true},
		{code: 301, header: []string{"Location", "/elsewhere"}, config: true},
		{code: 307, header: []string{"Location", "/elsewhere"}, config: true},
		{code: 308, header: []string{"Location", "/elsewhere"}, config: true},
		{code: 400, body: "out of order sample", first: refused, again: unconfirmed},
		{code: 400, body: "duplicate sample for timestamp", first: refused, again: unconfirmed},
		{code: 400, body: "out of bounds", first: refused, again: refused},
		{code: 401, config: true},
		{code: 403, config: true},
		{code: 404, config: true},
		{code: 405, config: true},
		{code: 407, config: true},
		{code: 408},
		{code: 409, body: "out of order sample", first: refused, again: unconfirmed},
		{code: 413, first: refused, again: refused},
		{code: 415, first: refused, again: refused},
		{code: 422, first: refused, again: refused},
		{code: 429},
		{code: 429, header: []string{"Retry-After", "7"}, after: 7 * time.Second},
		{code: 429, header: []string{"Retry-After", "3600"}, after: time.Minute},
		{code: 429, header: []string{"Retry-After", "-1"}},
		{code: 429, header: []string{"Retry-After", "soon"}},
		{code: 429, header: []string{"Retry-After", time.Now().Add(later).UTC().Format(http.TimeFormat)}, after: time.Minute},
		{code: 429, header: []string{"Retry-After", "Mon, 02 Jan 2006 15:04:05 GMT"}},
		{code: 500},
		{code: 503, header: []string{"Retry-After", "5"}, after: 5 * time.Second},
		{code: 504},
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
			o := Options{URL: server.URL, Logger: slog.New(slog.DiscardHandler), Client: config.DefaultHTTPClientConfig}
			o.defaults()
			p, err := newSender(o, Format{}, maxWait)
			if err != nil {
				t.Fatal(err)
			}
			for again, want := range map[bool]verdict{false: tc.first, true: tc.again} {
				got := p.attempt(t.Context(), &request{body: []byte("x"), samples: 1, mayHave: again})
				if got.verdict != want || got.config != tc.config || got.after != tc.after {
					t.Errorf("sent before %t: verdict %d, config %t, after %v: %v", again, got.verdict, got.config, got.after, got.err)
				}
			}
		})
	}
}

// The date of a Retry-After is as of the clock of this machine.
func TestRetryAfterADate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for at, want := range map[time.Duration]time.Duration{20 * time.Second: 20 * time.Second, -time.Hour: 0, time.Hour: time.Minute} {
			h := http.Header{"Retry-After": {time.Now().Add(at).UTC().Format(http.TimeFormat)}}
			if got := retryAfter(h); got != want {
				t.Errorf("in %v: %v, want %v", at, got, want)
			}
		}
	})
}
