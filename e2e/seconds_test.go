package e2e

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"
)

const (
	loadSeconds = 80
	stopAfter   = 20 * time.Second
	downFor     = 40 * time.Second
	// Jobs with outages need this time to catch up.
	catchUp = time.Minute
)

// secondsJobs lists the jobs with which each server reads the per-second endpoint.
func secondsJobs(target string) []job {
	at := []string{target}
	return []job{
		{name: "seconds-5s", path: secondsPath, targets: at, interval: 5 * time.Second},
		{name: "seconds-15s", path: secondsPath, targets: at, interval: 15 * time.Second},
		{name: "flaky-5s", path: flakyPath, targets: at, interval: 5 * time.Second},
		{name: "flaky-15s", path: flakyPath, targets: at, interval: 15 * time.Second},
		{name: "torn-5s", path: tornPath, targets: at, interval: 5 * time.Second},
	}
}

// metricsJobs read the ordinary page, for comparison.
func metricsJobs(target string) []job {
	at := []string{target}
	return []job{
		{name: "metrics-5s", path: metricsPath, targets: at, interval: 5 * time.Second},
		{name: "metrics-15s", path: metricsPath, targets: at, interval: 15 * time.Second},
	}
}

// sharedJob reads with a cursor that another server also uses, from another address.
func sharedJob(target string) job {
	return job{
		name: "shared-5s", path: secondsPath, targets: []string{target},
		interval: 5 * time.Second, cursor: "shared",
	}
}

// A reader is a server of [TestSeconds], and its jobs.
type reader struct {
	*server
	jobs []job
	stop syscall.Signal // signal that stops it; 0 if it is not stopped
}

// TestSeconds has five servers read one service at the same time. Two of them are replicas that are down for a while,
// and two use one name for their cursor. In the end each server has every second of every resource exactly once, with
// the numbers of the metric log.
func TestSeconds(t *testing.T) {
	t.Parallel()
	near, far := listenTwice(t)
	s, endLog := startService(t, near, far)
	addr := near.Addr().String()
	seconds, metrics := secondsJobs(addr), metricsJobs(addr)
	var readers []reader
	start := func(name string, p program, stop syscall.Signal, more ...job) {
		jobs := slices.Concat(seconds, more)
		r := prepareServer(t, name, p, slices.Concat(metrics, jobs)...)
		if r.isVictoria && stop != 0 {
			r.args = append(r.args, "-dedup.minScrapeInterval=1ms") // for samples that are sent twice
		}
		r.start(t)
		readers = append(readers, reader{r, jobs, stop})
	}
	start("prometheus-3", prometheus3, 0, sharedJob(addr))
	start("prometheus-2", prometheus2, 0)
	start("victoria", victoria, 0, sharedJob(far.Addr().String()))
	start("prometheus-3-stopped", prometheus3, syscall.SIGKILL)
	// A killed server loses the data that it has not written to its disk, up to five seconds.
	start("victoria-stopped", victoria, syscall.SIGTERM)

	loaded := make(chan error, 1)
	go func() { loaded <- s.load(t.Context(), loadSeconds) }()
	time.Sleep(stopAfter)
	restart(t, readers)
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
	checkLoad(t, truths)

	deadline := time.Now().Add(catchUp)
	for _, r := range readers {
		t.Run(r.name, func(t *testing.T) {
			for _, j := range r.jobs {
				t.Run(j.name, func(t *testing.T) {
					await(t, r.server, fmt.Sprintf(`windowstat_persecond_pass{job=%q,resource="steady"}`, j.name), end,
						deadline)
					n := 0
					for _, f := range fields {
						n += checkField(t, r.server, j, f, truths, end)
					}
					checkPeak(t, r.server, j, truths["burst"])
					t.Logf("%d samples", n)
				})
			}
			for _, j := range metrics {
				reportRate(t, r.server, j, truths["burst"])
			}
			// A stopped server gets its last responses again, and refuses the samples that it has.
			again := r.counted(s.stats)["cursor_resent_seconds_total"]
			if r.stop == 0 {
				again = 0
			}
			if n := refused(t, r.server); n > again*float64(len(habits())*secondMetrics()) {
				t.Errorf("%s refused %v samples; %v seconds were sent again", r.name, n, again)
			}
		})
	}
}

// restart stops the servers with a stop signal in the middle of their work, and starts them again after a while.
func restart(t *testing.T, readers []reader) {
	t.Helper()
	for _, r := range readers {
		if r.stop == 0 {
			continue
		}
		checkCounters(t, r.server) // the next process begins at zero
		r.end(r.stop)
	}
	time.Sleep(downFor)
	for _, r := range readers {
		if r.stop != 0 {
			r.start(t)
		}
	}
}

// checkLoad checks that the load produced data to compare.
func checkLoad(t *testing.T, truths map[string]truth) {
	t.Helper()
	for _, f := range fields {
		sum := int64(0)
		for _, x := range truths {
			for _, row := range x.rows {
				sum += f.of(row)
			}
		}
		if sum < loadSeconds && f.metric != "windowstat_persecond_occupied_pass" { // nothing is borrowed
			t.Fatalf("%s is %d in all: that is too little to compare anything with", f.metric, sum)
		}
	}
}

// checkField compares a job's samples of one metric with the truth, and returns the number of samples.
func checkField(t *testing.T, s *server, j job, f field, truths map[string]truth, end int64) int {
	t.Helper()
	want := values{}
	for resource, x := range truths {
		want[resource] = x.values(f, end)
	}
	return checkSamples(t, s, fmt.Sprintf(`%s{job=%q}[10m]`, f.metric, j.name), want, end)
}

// checkPeak queries the second with the most calls, which is the purpose of the page.
func checkPeak(t *testing.T, s *server, j job, burst truth) {
	t.Helper()
	if got, want := s.number(t, fmt.Sprintf(`max_over_time(windowstat_persecond_pass{job=%q,resource="burst"}[5m])`,
		j.name)), float64(burst.peak()); got != want {
		t.Errorf("the peak of burst is %v; it should be %v", got, want)
	}
}

// reportRate logs the view of the same second without the page.
func reportRate(t *testing.T, s *server, j job, burst truth) {
	t.Helper()
	for _, over := range []string{"30s", "1m"} {
		rate := s.number(t,
			fmt.Sprintf(`max_over_time(rate(windowstat_pass_total{job=%q,resource="burst"}[%s])[5m:1s])`, j.name, over))
		t.Logf("%s: rate over %s has a peak of %.1f of %d calls a second: too low by a factor of %.1f",
			j.name, over, rate, burst.peak(), float64(burst.peak())/rate)
	}
}
