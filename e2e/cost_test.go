//go:build fleet

package e2e

import (
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// costSeconds is the duration of the measurement, a multiple of the intervals of all ways.
const costSeconds = 90

// scaled is a selector of the metrics of the command scale.
var scaled = []string{
	"windowstat_persecond_pass", "windowstat_persecond_block", "windowstat_persecond_complete",
	"windowstat_persecond_exception",
	"windowstat_persecond_in_flight_max", "windowstat_persecond_pass_peak", "windowstat_persecond_rt_sum_seconds",
	"windowstat_persecond_rt_min_seconds", "windowstat_persecond_rt_max_seconds", "windowstat_persecond_rt_p99_seconds",
}

// TestCost measures the cost of each way for a Prometheus and for a service with a thousand resources, all at the same
// time, and logs the table of docs/scale.md. It asserts no figures, only that samples exist.
func TestCost(t *testing.T) {
	scale := buildOnce(".", "./scale")(t)
	ways := []*costly{
		{name: "nothing", way: "none"},
		{name: "`/metrics` every second", way: "metrics", interval: time.Second},
		{name: "`/metrics` every 15 s", way: "metrics", interval: 15 * time.Second},
		{name: "seconds, ten metrics, scraped every 15 s", way: "scrape", interval: 15 * time.Second, metrics: scaled},
		{
			name: "seconds, passes and blocks, scraped every 15 s", way: "scrape",
			interval: 15 * time.Second, metrics: scaled[:2],
		},
		{
			name: "seconds, passes alone, scraped every 15 s", way: "scrape",
			interval: 15 * time.Second, metrics: scaled[:1],
		},
		{name: "seconds, ten metrics, pushed every 5 s", way: "remote", interval: 5 * time.Second},
		{name: "seconds, ten metrics, pushed every second", way: "remote", interval: time.Second},
	}
	for _, w := range ways {
		w.start(t, scale)
	}
	time.Sleep(30 * time.Second) // each service has been scraped twice
	for _, w := range ways {
		w.cpu, w.samples = -w.server.cpu(t), -w.server.appended(t)
	}
	time.Sleep(costSeconds * time.Second)
	for _, w := range ways {
		w.cpu += w.server.cpu(t)
		w.samples += w.server.appended(t)
	}
	idle := ways[0]
	idle.end(t)
	t.Log("| way | samples | bytes on the wire | CPU of the server | CPU of the service |")
	t.Log("|---|---|---|---|---|")
	for _, w := range ways[1:] {
		w.end(t)
		t.Logf("| %s | %.2f million | %.1f MB | %.2f s | %.2f s |", w.name, w.samples/1e6, w.bytes/1e6,
			w.cpu-idle.cpu, w.service-idle.service)
		if w.samples == 0 {
			t.Errorf("%s: no samples", w.name)
		}
	}
}

// A costly way exports the counts of a service. It holds the cost: CPU of the server and of the service in seconds,
// appended samples, and bytes.
type costly struct {
	name, way                    string
	interval                     time.Duration
	metrics                      []string
	server                       *server
	scale                        *exec.Cmd
	out                          strings.Builder
	cpu, service, samples, bytes float64
}

func (w *costly) start(t *testing.T, scale string) {
	t.Helper()
	addr := freeAddress(t)
	j := job{
		name: "scale", path: secondsPath, targets: []string{addr}, interval: w.interval,
		timeout: min(w.interval, 10*time.Second), metrics: w.metrics,
	}
	var jobs []job
	switch w.way {
	case "metrics":
		j.path = metricsPath
		jobs = append(jobs, j)
	case "scrape":
		jobs = append(jobs, j)
	}
	w.server = startServer(t, "prometheus-3", prometheus3, jobs...)
	// The service starts its measurement five seconds after its start, and exits at the end of it.
	w.scale = command(t, scale, "-way", w.way, "-listen", addr, "-url", writeTo(w.server), "-interval",
		max(w.interval, time.Second).String(),
		"-d", fmt.Sprint((costSeconds+25)*time.Second))
	w.scale.Stdout, w.scale.Stderr = &w.out, os.Stderr
	if err := w.scale.Start(); err != nil {
		t.Fatal(err)
	}
}

var spent = regexp.MustCompile(`([0-9.]+) % of a core.* ([0-9.]+) bytes a second`)

// end waits until the service has printed its cost in the measured seconds.
func (w *costly) end(t *testing.T) {
	t.Helper()
	if err := w.scale.Wait(); err != nil {
		t.Fatalf("%s: %v", w.name, err)
	}
	m := spent.FindStringSubmatch(w.out.String())
	if m == nil {
		t.Fatalf("%s: %s", w.name, w.out.String())
	}
	cpu, _ := strconv.ParseFloat(m[1], 64)
	bytes, _ := strconv.ParseFloat(m[2], 64)
	w.service, w.bytes = cpu/100*costSeconds, bytes*costSeconds
}

// appended returns the number of samples that a Prometheus has stored.
func (s *server) appended(t *testing.T) (n float64) {
	t.Helper()
	page, err := s.get(metricsPath, url.Values{})
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(page)) {
		if strings.HasPrefix(line, "prometheus_tsdb_head_samples_appended_total{") {
			x, err := strconv.ParseFloat(strings.Fields(line)[1], 64)
			if err != nil {
				t.Fatal(err)
			}
			n += x
		}
	}
	return n
}

// cpu returns the processor time of the server's process in seconds, with a resolution of a hundredth.
func (s *server) cpu(t *testing.T) float64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.process.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(b), ") ")
	fields := strings.Fields(after)
	user, err := strconv.Atoi(fields[11])
	if err != nil {
		t.Fatal(err)
	}
	system, err := strconv.Atoi(fields[12])
	if err != nil {
		t.Fatal(err)
	}
	return float64(user+system) / 100
}
