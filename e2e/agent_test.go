package e2e

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
)

const (
	agentSeconds   = 65 // four scrapes at least
	agentResources = 100
)

// TestAgents runs servers and agents with the configurations of the documentation. All scrape every 15 seconds. The
// agents, and two of the servers, forward by remote write. Each second of each resource must be stored once.
func TestAgents(t *testing.T) {
	t.Parallel()
	var resources []string
	for i := range agentResources {
		resources = append(resources, fmt.Sprintf("GET /items/%d", i))
	}
	p := newPaced(t, time.Now(), resources, collector.Options{})
	p.calls = func(resource int, second int64) count {
		n := resource*31 + int(second)*17
		return count{pass: 1 + n%5, block: n / 5 % 3}
	}

	// Each has its own pages, because all connect from the same address.
	const forPrometheus, forVictoria = "track_timestamps_staleness", "no_stale_markers"
	scrape := func(text string) (config, addr string) {
		addr = servePages(t, p.stats)
		return documented(t, "seconds.md", text, addr), addr
	}
	prometheus, inPrometheus := scrape(forPrometheus)
	inOrder := startConfigured(t, "prometheus-3", prometheus3, prometheus)
	window := startConfigured(t, "prometheus-3-window", prometheus3,
		documented(t, "seconds.md", "out_of_order_time_window", ""))
	victoriaMetrics, inVictoria := scrape(forVictoria)
	vm := startConfigured(t, "victoria", victoria, victoriaMetrics)
	type way struct {
		name string
		to   *server
		addr string // of the pages
	}
	ways := []way{{"Prometheus", inOrder, inPrometheus}, {"VictoriaMetrics", vm, inVictoria}}
	for _, to := range []*server{window, vm} {
		config, addr := scrape(forVictoria)
		startVMAgent(t, config, to)
		ways = append(ways, way{"vmagent to " + to.name, to, addr})
	}
	for _, to := range []*server{inOrder, vm} {
		config, addr := scrape(forPrometheus)
		startPrometheusAgent(t, config, to)
		ways = append(ways, way{"Prometheus agent to " + to.name, to, addr})
	}
	for from, to := range map[*program]*server{&prometheus2: inOrder, &prometheus3: vm} {
		config, addr := scrape(forPrometheus)
		startConfigured(t, from.name, *from, config+forwarding(t, writeTo(to)))
		ways = append(ways, way{from.name + " to " + to.name, to, addr})
	}

	// Prometheus does not forward samples from before its start, so the run begins then.
	begin := time.Now().Unix() + 1
	end := begin + agentSeconds
	p.second = begin
	p.clock.set(middle(begin))
	p.live(func() bool { return p.second < end+30 }) // until the last second has been scraped and forwarded
	deadline := time.Now().Add(catchUp)
	for _, w := range ways {
		t.Run(w.name, func(t *testing.T) {
			n := p.check(t, w.to, fmt.Sprintf(`job="shop-seconds",instance=%q`, w.addr), begin, end, deadline)
			t.Logf("%d samples", n)
		})
	}
}

// servePages serves both pages of some statistics, and returns their address.
func servePages(t *testing.T, c *collector.Collector) (addr string) {
	t.Helper()
	seconds, err := prom.NewSeconds(c, prom.SecondsOptions{})
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := prom.Handler(c, prom.Options{})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(metricsPath, metrics)
	mux.Handle(secondsPath, seconds)
	l := listen(t, "127.0.0.1:0")
	serve(t, mux, l, seconds.ConnState)
	return l.Addr().String()
}

// startVMAgent starts an agent that forwards to a server.
func startVMAgent(t *testing.T, config string, to *server) {
	t.Helper()
	s := newServer(t, "vmagent", vmagent.path(t), true)
	s.args = []string{
		"-httpListenAddr=" + s.addr, "-promscrape.config=" + s.writeConfig(t, config),
		"-remoteWrite.url=" + writeTo(to), "-remoteWrite.tmpDataPath=" + filepath.Join(s.dir, "data"),
	}
	s.start(t)
}

// startPrometheusAgent starts a Prometheus agent that forwards to a server as documented.
func startPrometheusAgent(t *testing.T, config string, to *server) {
	t.Helper()
	s := newServer(t, "prometheus-agent", prometheus3.path(t), false)
	s.args = []string{
		"--agent", "--config.file=" + s.writeConfig(t, config+forwarding(t, writeTo(to))), "--storage.agent.path=" +
			filepath.Join(s.dir, "data"),
		"--web.listen-address=" + s.addr,
	}
	s.start(t)
}

// forwarding returns the documented configuration of remote write to a URL.
func forwarding(t *testing.T, url string) string {
	t.Helper()
	const documentedURL = "http://receiver:8428/api/v1/write"
	return strings.ReplaceAll(documented(t, "seconds.md", "remote_write:\n  - url: "+documentedURL, ""), documentedURL,
		url)
}

// writeTo returns the remote write URL of a server.
func writeTo(s *server) string { return "http://" + s.addr + "/api/v1/write" }
