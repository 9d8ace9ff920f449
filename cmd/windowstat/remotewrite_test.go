package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// A command pushes by the version of remote write that the flag names.
func TestRemoteWriteProtocol(t *testing.T) {
	for _, tc := range []struct {
		flags []string
		want  string // in the header
	}{
		{nil, "0.1.0"},
		{[]string{"--remote-write.protocol=1.0"}, "0.1.0"},
		{[]string{"--remote-write.protocol=2.0"}, "2.0.0"},
		{[]string{"--remote-write.protocol=2.0-deltas"}, "2.0.0"},
	} {
		t.Run(tc.want, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			versions := map[string]int{}
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				mu.Lock()
				defer mu.Unlock()
				versions[r.Header.Get("X-Prometheus-Remote-Write-Version")]++
				w.Header().Set("X-Prometheus-Remote-Write-Samples-Written", "1000000")
			}))
			defer server.Close()
			args := append([]string{"demo", "--duration=2s", anyPort, "--remote-write.url=" + server.URL}, tc.flags...)
			p := launch(t, args...)
			if status := p.wait(t); status != 0 {
				t.Errorf("status %d:\n%s", status, p.output())
			}
			if len(versions) != 1 || versions[tc.want] == 0 {
				t.Errorf("%v, want %s", versions, tc.want)
			}
		})
	}
}
