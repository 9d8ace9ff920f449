package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// The flags of OTLP select a push of histograms and sums, cumulative or as deltas.
func TestOTLPFlags(t *testing.T) {
	for _, tc := range []struct {
		flags    []string
		has, not string
	}{
		{nil, "windowstat_persecond_rt_seconds", "windowstat_persecond_rt_distribution_seconds"},
		{[]string{"--otlp.deltas"}, "windowstat_persecond_rt_distribution_seconds", "windowstat_persecond_rt_seconds"},
	} {
		t.Run(tc.has, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var all bytes.Buffer
			server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				z, err := gzip.NewReader(r.Body)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				if _, err := io.Copy(&all, z); err != nil {
					t.Error(err)
				}
			}))
			defer server.Close()
			p := launch(
				t,
				append(
					[]string{"demo", "--duration=2s", anyPort, "--otlp.url=" + server.URL, "--otlp.label=job=shop"},
					tc.flags...)...)
			if status := p.wait(t); status != 0 {
				t.Errorf("status %d:\n%s", status, p.output())
			}
			for text, want := range map[string]bool{
				tc.has: true, tc.not: false, "service.name": true, "shop": true,
				"windowstat_persecond_pass_total": true,
			} {
				if bytes.Contains(all.Bytes(), []byte(text)) != want {
					t.Errorf("%s is there: %t, want %t, in %d bytes", text, !want, want, all.Len())
				}
			}
		})
	}
}
