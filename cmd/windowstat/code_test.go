package main

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/windowstat/windowstat/collector"
)

// The counts of the proxy equal the counts of a load tool, by the status that the client received, including a 502 and
// an upgrade. Exceptions are the selected statuses, and skipped requests are not counted.
func TestProxyCodes(t *testing.T) {
	t.Parallel()
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch way := strings.TrimPrefix(r.URL.Path, "/"); way {
		case "down":
			panic(http.ErrAbortHandler)
		case "upgrade":
			conn, buf, err := w.(http.Hijacker).Hijack()
			if err != nil {
				panic(err)
			}
			defer conn.Close()
			fmt.Fprint(buf, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
			_ = buf.Flush()
		case "early":
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusCreated)
		default:
			status, _ := strconv.Atoi(way)
			w.WriteHeader(max(status, 200))
		}
	}))
	defer upstream.Close()
	p := launch(t, "proxy", anyPort, "--upstream", upstream.URL, "--proxy.listen-address=127.0.0.1:0",
		"--exception-status=5xx,401", "--skip=/healthz", "--skip=/static/", "--skip", "OPTIONS /")
	front := p.find(t, `proxy +(http\S+)`)
	hc := &http.Client{
		Transport:     &http.Transport{},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	defer hc.CloseIdleConnections()
	ways := []string{
		"200",
		"200",
		"401",
		"404",
		"304",
		"503",
		"600",
		"302",
		"early",
		"upgrade",
		"down",
		"healthz",
		"static/x",
		"static",
		"options",
	}
	var mu sync.Mutex
	got, failed, all := map[string]int64{}, int64(0), int64(0)
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 3))
			for range 150 {
				way := ways[random.IntN(len(ways))]
				req := &http.Request{Method: []string{"GET", "HEAD"}[random.IntN(2)], Header: http.Header{}}
				switch way {
				case "upgrade":
					req.Method = "GET"
					req.Header.Set("Connection", "Upgrade")
					req.Header.Set("Upgrade", "websocket")
				case "options":
					req.Method = "OPTIONS"
				}
				req.URL, _ = url.Parse(front + "/" + way)
				resp, err := hc.Do(req)
				if err != nil {
					t.Errorf("%s %s: %v", req.Method, way, err)
					continue
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if strings.HasPrefix(way, "static") || way == "healthz" || way == "options" {
					continue
				}
				mu.Lock()
				all++
				got[collector.HTTPStatus(resp.StatusCode).String()]++
				if resp.StatusCode/100 == 5 || resp.StatusCode == 401 {
					failed++
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	metrics := settled(t, p.find(t, `metrics +(http\S+)`))
	for code, n := range got {
		if line := fmt.Sprintf("windowstat_inbound_complete_total{code=%q} %d\n", code, n); !strings.Contains(metrics,
			line) {
			t.Errorf("no %q on the page", line)
		}
	}
	for _, line := range []string{
		fmt.Sprintf("windowstat_inbound_rt_seconds_count %d\n", all),
		fmt.Sprintf("windowstat_inbound_exception_total %d\n", failed),
		"windowstat_inbound_complete_total 0\n",
	} {
		if !strings.Contains(metrics, line) {
			t.Errorf("no %q on the page", line)
		}
	}
	if n := strings.Count(metrics, "windowstat_inbound_complete_total{"); n != len(got) || n != 10 {
		t.Errorf("%d codes, want %v", n, got)
	}
	if strings.Contains(metrics, "healthz") || strings.Contains(metrics, "static") ||
		strings.Contains(metrics, "OPTIONS") {
		t.Error("what was skipped is on the page")
	}
	if status := p.end(t); status != 0 {
		t.Errorf("status %d:\n%s", status, p.output())
	}
}
