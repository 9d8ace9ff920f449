package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// closingTargets is the number of targets of each client.
const closingTargets = 20

// TestClosing measures the delay between the next request of a client whose scrape has timed out and the end of the
// connection of that scrape, while all processors are busy. The timeout of a scrape is its interval, so both happen at
// the same time. The figures belong to the constants of exporter/prom/response.go. Each client scrapes for
// $WINDOWSTAT_E2E_CLOSING, as by make closing.
func TestClosing(t *testing.T) {
	s := os.Getenv("WINDOWSTAT_E2E_CLOSING")
	if s == "" {
		t.Skip("WINDOWSTAT_E2E_CLOSING is not set")
	}
	run, err := time.ParseDuration(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, load := range []struct {
		name       string
		loops      int  // processes that compute, for each processor
		goroutines int  // that compute in the process of the service, for each processor
		throttled  bool // the client runs for a tenth of the time, as in a container with a CPU quota
	}{
		{"calm", 0, 0, false},
		{"busy", 1, 0, false},
		{"very busy", 4, 0, false},
		{"saturated", 0, 8, false},
		{"throttled", 0, 0, true},
	} {
		for _, c := range []struct {
			name string
			program
		}{
			{"Go", program{}},
			{"prometheus-3", prometheus3},
			{"prometheus-2", prometheus2},
			{"victoria", victoria},
			{"vmagent", vmagent},
		} {
			for _, scheme := range []string{"http", "https"} {
				if load.throttled && c.install == nil {
					continue // that client is this process
				}
				t.Run(load.name+"/"+c.name+"/"+scheme, func(t *testing.T) {
					keepBusy(t, load.loops)
					defer saturate(load.goroutines)()
					page := &unending{asked: map[string]time.Time{}, ended: map[string]time.Time{}}
					service := httptest.NewUnstartedServer(page)
					if scheme == "http" {
						service.Start()
					} else {
						service.StartTLS()
					}
					defer service.Close()
					defer service.CloseClientConnections()
					if c.install == nil {
						getUnending(t, service, run)
					} else {
						scrapeUnending(t, c.name, c.program, service, run, load.throttled)
					}
					page.report(t)
				})
			}
		}
	}
}

// keepBusy runs loops on each processor until the test ends.
func keepBusy(t *testing.T, loops int) {
	t.Helper()
	for range loops * runtime.NumCPU() {
		loop := command(t, "/bin/sh", "-c", "while :; do :; done")
		if err := loop.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = loop.Process.Kill()
			_ = loop.Wait() // it was killed
		})
	}
}

// saturate runs goroutines that compute on each processor, until stop is called.
func saturate(goroutines int) (stop func()) {
	var stopped atomic.Bool
	var all sync.WaitGroup
	for range goroutines * runtime.NumCPU() {
		all.Go(func() {
			for !stopped.Load() {
			}
		})
	}
	return func() { stopped.Store(true); all.Wait() }
}

// getUnending requests an unending page every second with a timeout of a second, with Go's client.
func getUnending(t *testing.T, service *httptest.Server, run time.Duration) {
	t.Helper()
	var all sync.WaitGroup
	defer all.Wait()
	until := time.Now().Add(run)
	get := func(url string) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			panic(err)
		}
		resp, err := service.Client().Do(r)
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body) // it times out
			_ = resp.Body.Close()
		}
	}
	for i := range closingTargets {
		all.Go(func() {
			for tick := time.NewTicker(time.Second); time.Now().Before(until); <-tick.C {
				get(fmt.Sprintf("%s/?cursor=%d", service.URL, i))
			}
		})
	}
}

// scrapeUnending has a server scrape an unending page every second with a timeout of a second.
func scrapeUnending(t *testing.T, name string, p program, service *httptest.Server, run time.Duration, throttled bool) {
	t.Helper()
	s := newServer(t, name, p.path(t), p.name == victoria.name)
	scheme, addr, _ := strings.Cut(service.URL, "://")
	var b strings.Builder
	b.WriteString("scrape_configs:\n")
	for i := range closingTargets {
		fmt.Fprintf(&b, "- job_name: job%d\n  params: {cursor: ['%d']}\n", i, i)
		fmt.Fprintf(&b, "  scheme: %s\n  tls_config: {insecure_skip_verify: true}\n", scheme)
		fmt.Fprintf(&b, "  scrape_interval: 1s\n  scrape_timeout: 1s\n  static_configs: [{targets: ['%s']}]\n", addr)
	}
	s.configure(t, b.String())
	if p.name == vmagent.name {
		s.ready = "/health"
		s.args = []string{
			"-httpListenAddr=" + s.addr, "-promscrape.config=" + s.writeConfig(t, b.String()),
			"-remoteWrite.url=http://" + s.addr + "/api/v1/write", "-remoteWrite.tmpDataPath=" + s.dir + "/data",
		}
	}
	s.start(t)
	for until := time.Now().Add(run); time.Now().Before(until); time.Sleep(10 * time.Millisecond) {
		if throttled {
			_ = s.process.Process.Signal(syscall.SIGSTOP)
			time.Sleep(90 * time.Millisecond)
			_ = s.process.Process.Signal(syscall.SIGCONT)
		}
	}
	s.end(syscall.SIGKILL)
}

// unending is a page whose responses lack their end until the client closes the connection.
type unending struct {
	mu           sync.Mutex
	asked, ended map[string]time.Time // by cursor: the request that is being served, the end of the last one
	delays       []time.Duration      // from a request to the end of the one before it, negative if that came first
}

func (x *unending) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	cursor := r.URL.Query().Get("cursor")
	began := time.Now()
	x.mu.Lock()
	if ended, ok := x.ended[cursor]; ok {
		x.delays = append(x.delays, ended.Sub(began))
		delete(x.ended, cursor)
	}
	x.asked[cursor] = began
	x.mu.Unlock()
	_, _ = io.WriteString(w, "a 1\n")
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
	x.mu.Lock()
	defer x.mu.Unlock()
	if next := x.asked[cursor]; next != began {
		x.delays = append(x.delays, time.Since(next))
	} else {
		x.ended[cursor] = time.Now()
	}
}

// report logs how late connections ended.
func (x *unending) report(t *testing.T) {
	t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.delays) < closingTargets {
		t.Fatalf("%d scrapes timed out; those are too few", len(x.delays))
	}
	slices.Sort(x.delays)
	late := 0
	for _, d := range x.delays {
		if d > 0 {
			late++
		}
	}
	at := func(share float64) time.Duration {
		return x.delays[int(share*float64(len(x.delays)-1))].Round(10 * time.Microsecond)
	}
	t.Logf("of %d scrapes that timed out, the connections of %d ended after the next request; "+
		"delay: median %v, 90%% %v, 99%% %v, longest %v",
		len(x.delays), late, at(0.5), at(0.9), at(0.99), at(1))
}
