package otlp

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// benchmarkSpans returns the spans of a batch, with ten attributes each, as an SDK sends them.
func benchmarkSpans(first uint64, end time.Time) []sent {
	var all []sent
	for i := range uint64(512) {
		s := at(first+i, 0, 0)
		s.end = end.Add(-time.Duration(i) * time.Millisecond)
		s.start = s.end.Add(-20 * time.Millisecond)
		s.attributes = map[string]any{
			"http.request.method": "GET", "url.path": "/users/12345", "http.route": fmt.Sprintf("/users/{id}/%d", i%20),
			"http.response.status_code": 200, "url.scheme": "http", "server.address": "shop.example.com",
			"server.port":              8080,
			"network.protocol.version": "1.1", "user_agent.original": "Mozilla/5.0 (X11; Linux x86_64)",
			"client.address": "10.0.0.7",
		}
		all = append(all, s)
	}
	return all
}

// BenchmarkSpan measures all steps of a span, from the request to the sealed second.
func BenchmarkSpan(b *testing.B) {
	for _, tc := range []struct {
		name, contentType string
		encode            func(...sent) []byte
	}{{"protobuf", protobufType, toProtobuf}, {"JSON", jsonType, toJSON}} {
		b.Run(tc.name, func(b *testing.B) {
			h, r := newTestHandler(b, Options{MaxSpans: 1 << 30})
			b.ReportAllocs()
			id := uint64(1)
			for n := 0; n < b.N; n += 512 {
				b.StopTimer()
				body := tc.encode(benchmarkSpans(id, time.Now())...)
				id += 512
				request := httptest.NewRequest(http.MethodPost, tracesPath, bytes.NewReader(body))
				request.Header.Set("Content-Type", tc.contentType)
				w := httptest.NewRecorder()
				b.StartTimer()
				h.ServeHTTP(w, request)
				if w.Code != http.StatusOK || w.Body.Len() > 2 {
					b.Fatal(w.Code, w.Body)
				}
			}
			if err := r.finish(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// BenchmarkDecode measures the decoding of a span.
func BenchmarkDecode(b *testing.B) {
	for name, tc := range map[string]struct {
		encode func(...sent) []byte
		decode func(*batch, []byte) error
	}{"protobuf": {toProtobuf, (*batch).protobuf}, "JSON": {toJSON, (*batch).json}} {
		b.Run(name, func(b *testing.B) {
			body := tc.encode(benchmarkSpans(1, time.Now())...)
			var to batch
			b.ReportAllocs()
			for n := 0; n < b.N; n += 512 {
				to = batch{spans: to.spans[:0]}
				if err := tc.decode(&to, body); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
