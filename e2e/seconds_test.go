package e2e

import (
	"bufio"
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/windowstat/windowstat/exporter/metriclog"
)

const (
	loadSeconds = 75
	killAfter   = 25 * time.Second
	downFor     = 20 * time.Second
	// The jobs whose page has outages need that long to catch up.
	catchUp = time.Minute
)

// secondsJobs are the ways in which each server reads the page of seconds.
var secondsJobs = []job{
	{"seconds-5s", secondsPath, 5 * time.Second},
	{"seconds-15s", secondsPath, 15 * time.Second},
	{"flaky-5s", flakyPath, 5 * time.Second},
	{"flaky-15s", flakyPath, 15 * time.Second},
	{"torn-5s", tornPath, 5 * time.Second},
}

// metricsJobs read the ordinary page, for comparison.
var metricsJobs = []job{
	{"metrics-5s", metricsPath, 5 * time.Second},
	{"metrics-15s", metricsPath, 15 * time.Second},
}

// A field is a metric that the metric log has too.
type field struct {
	metric string
	of     func(metriclog.Row) int64
}

var fields = []field{
	{"windowstat_persecond_pass", func(r metriclog.Row) int64 { return r.Pass }},
	{"windowstat_persecond_block", func(r metriclog.Row) int64 { return r.Block }},
	{"windowstat_persecond_complete", func(r metriclog.Row) int64 { return r.Success }},
	{"windowstat_persecond_exception", func(r metriclog.Row) int64 { return r.Exception }},
}

// TestSeconds has four servers read one service at the same time: two of them replicas, of which one is killed and comes
// back. In the end each holds every second of every resource exactly once, and as it is in the metric log.
func TestSeconds(t *testing.T) {
	programs := []struct {
		name string
		program
	}{
		{"prometheus-3-a", prometheus3},
		{"prometheus-3-b", prometheus3}, // the replica that is killed
		{"prometheus-2", prometheus2},
		{"victoria", victoria},
	}
	executables := map[string]string{}
	for _, p := range programs {
		if executables[p.program.name] == "" {
			executables[p.program.name] = p.path(t)
		}
	}
	s, endLog := startService(t)
	var servers []*server
	for _, p := range programs {
		servers = append(servers, startServer(t, p.name, p.program, executables[p.program.name], s.addr, append(metricsJobs, secondsJobs...)))
	}

	loaded := make(chan error, 1)
	go func() { loaded <- s.load(t.Context(), loadSeconds) }()
	killed := servers[1]
	time.Sleep(killAfter)
	checkCounters(t, killed) // the next process begins at zero
	// A page that was written whole counts as read. So it is not killed with one in its hands: that is a documented limit.
	s.quiet(killed.name)
	killed.end(syscall.SIGKILL)
	time.Sleep(downFor)
	killed.start(t)
	if err := <-loaded; err != nil {
		t.Fatal(err)
	}
	if err := endLog(); err != nil {
		t.Fatal(err)
	}
	end := s.open()
	truths, err := s.truths()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		sum := int64(0)
		for _, x := range truths {
			for _, row := range x.rows {
				sum += f.of(row)
			}
		}
		if sum < loadSeconds {
			t.Fatalf("%s is %d in all: that is too little to compare anything with", f.metric, sum)
		}
	}

	for _, server := range servers {
		t.Run(server.name, func(t *testing.T) {
			for _, j := range secondsJobs {
				t.Run(j.name, func(t *testing.T) {
					await(t, server, j, end)
					n := 0
					for _, f := range fields {
						n += checkSeconds(t, server, j, f, truths, end)
					}
					checkPeak(t, server, j, truths["burst"])
					t.Logf("%d samples", n)
				})
			}
			for _, j := range metricsJobs {
				reportRate(t, server, j, truths["burst"])
			}
			checkCounters(t, server)
		})
	}
}

// await waits until a job has read all seconds before end.
func await(t *testing.T, s *server, j job, end int64) {
	t.Helper()
	newest := int64(0)
	for deadline := time.Now().Add(catchUp); time.Now().Before(deadline); time.Sleep(500 * time.Millisecond) {
		for _, x := range s.query(t, fmt.Sprintf(`windowstat_persecond_pass{job=%q,resource="steady"}[5m]`, j.name)) {
			newest = x.Values[len(x.Values)-1].at / 1000
		}
		if newest >= end-1 {
			return
		}
	}
	t.Fatalf("the newest second is %d; it should have come to %d", newest, end-1)
}

// checkSeconds compares a job's samples of one metric with the truth, and returns how many there are.
func checkSeconds(t *testing.T, s *server, j job, f field, truths map[string]truth, end int64) (n int) {
	t.Helper()
	var wrong []string
	complain := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	held := map[string][]sample{}
	for _, x := range s.query(t, fmt.Sprintf(`%s{job=%q}[5m]`, f.metric, j.name)) {
		resource := x.Metric["resource"]
		if held[resource] != nil {
			complain("%s has several series", resource)
		}
		held[resource] = x.Values
	}
	if len(held) != len(truths) {
		complain("there are %d resources; there should be %d", len(held), len(truths))
	}
	for resource, truth := range truths {
		n += len(held[resource])
		times := map[int64]int{}
		for _, v := range held[resource] {
			second := v.at / 1000
			times[second]++
			if want := f.of(truth.rows[second]); v.value != float64(want) || v.at%1000 != 0 || second < truth.since {
				complain("%s at %d ms is %v; it should be %d", resource, v.at, v.value, want)
			}
		}
		for second := truth.since; second < end; second++ {
			if times[second] != 1 {
				complain("%s has %d samples of second %d", resource, times[second], second)
			}
		}
	}
	if len(wrong) > 0 {
		t.Errorf("%s is wrong in %d places:\n%s", f.metric, len(wrong), strings.Join(wrong[:min(len(wrong), 10)], "\n"))
	}
	return n
}

// checkPeak asks for what the page is made for: the second with the most calls.
func checkPeak(t *testing.T, s *server, j job, burst truth) {
	t.Helper()
	if got, want := s.number(t, fmt.Sprintf(`max_over_time(windowstat_persecond_pass{job=%q,resource="burst"}[5m])`, j.name)), float64(burst.peak()); got != want {
		t.Errorf("the peak of burst is %v; it should be %v", got, want)
	}
}

// reportRate tells what can be seen of that second without the page.
func reportRate(t *testing.T, s *server, j job, burst truth) {
	t.Helper()
	for _, over := range []string{"30s", "1m"} {
		rate := s.number(t, fmt.Sprintf(`max_over_time(rate(windowstat_pass_total{job=%q,resource="burst"}[%s])[5m:1s])`, j.name, over))
		t.Logf("%s: rate over %s has a peak of %.1f of %d calls a second: too low by a factor of %.1f",
			j.name, over, rate, burst.peak(), float64(burst.peak())/rate)
	}
}

// checkCounters looks whether a Prometheus refused samples. VictoriaMetrics refuses none, and would hold too many.
func checkCounters(t *testing.T, s *server) {
	t.Helper()
	if s.isVictoria {
		return
	}
	page, err := s.get("/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for lines := bufio.NewScanner(bytes.NewReader(page)); lines.Scan(); {
		if name, value, ok := strings.Cut(lines.Text(), " "); ok {
			found[name], _ = strconv.ParseFloat(value, 64)
		}
	}
	for _, name := range []string{
		"prometheus_target_scrapes_sample_out_of_order_total",
		"prometheus_target_scrapes_sample_duplicate_timestamp_total",
		"prometheus_target_scrapes_sample_out_of_bounds_total",
		"prometheus_target_scrapes_exceeded_sample_limit_total",
	} {
		if value, ok := found[name]; !ok || value != 0 {
			t.Errorf("%s: %s is %v, there: %t", s.name, name, value, ok)
		}
	}
}
