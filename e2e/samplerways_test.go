package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/exporter/push"
	"github.com/windowstat/windowstat/exporter/sampler"
)

// A watch configures a test with a service that keeps its true counts: its duration and its conditions.
type watch struct {
	seconds  int
	crowd    int                   // number of additional series
	steps    map[int]time.Duration // steps of the clock, by the second before each
	programs []program
	busy     bool // one processor, and a busy loop
}

// TestSamplerTruth has servers scrape a service that keeps its true counts, through package exporter and through the
// one-line setup. The service also pushes in both formats. Each cell in each database is right, or absent and counted;
// no cell is invented.
func TestSamplerTruth(t *testing.T) {
	t.Parallel()
	missed := watch{seconds: 42, programs: []program{prometheus3, prometheus2, victoria}}.run(t)
	if expected := 2.0 + 2 + 3 + 2; missed < expected {
		t.Errorf("%v seconds were missed; the troubles cost %v", missed, expected)
	}
}

// TestSamplerTruthOfSteps is TestSamplerTruth with a clock that steps forward and back: seconds are skipped, and one
// second is long.
func TestSamplerTruthOfSteps(t *testing.T) {
	t.Parallel()
	watch{
		seconds: 20, programs: []program{prometheus3, victoria},
		steps: map[int]time.Duration{5: 5400 * time.Millisecond, 10: -3700 * time.Millisecond},
	}.run(t)
}

// A samplerWay is a route from one Sampler to the servers.
type samplerWay struct {
	job  string
	only *server // the server that uses the route; all if nil
	page http.Handler
	self string // path of the page with its counters

	missed, unplaced float64 // counts when the service ended
}

// count reads the counters of the Sampler.
func (w *samplerWay) count() {
	answer := httptest.NewRecorder()
	w.page.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, w.self+"?metric=persecond_truth_length", nil))
	found := parsePage(answer.Body.Bytes())
	w.missed = found["windowstat_sampler_missed_seconds_total"]
	w.unplaced = found["windowstat_sampler_unplaced_increases_total"]
}

// run returns the number of seconds that package exporter's Sampler missed.
func (w watch) run(t *testing.T) (missed float64) {
	t.Helper()
	var step atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(step.Load())) }
	l, oneLine := listen(t, "127.0.0.1:0"), listen(t, "127.0.0.1:0")
	jobs := []job{{name: "seconds", path: secondsPath, targets: []string{l.Addr().String()}, interval: 5 * time.Second}}
	simple := len(w.steps) == 0 && w.crowd == 0
	if simple {
		jobs = append(jobs,
			job{
				name: "one-line", path: secondsPath,
				targets: []string{oneLine.Addr().String()}, interval: 5 * time.Second,
			})
	}
	var servers []*server
	var pushes []push.Options
	for _, p := range w.programs {
		s := startServer(t, p.name, p, jobs...)
		servers = append(servers, s)
		pushes = append(pushes,
			push.Options{
				URL:    "http://" + s.addr + "/api/v1/write",
				Labels: map[string]string{"job": "push", "instance": "e2e"},
			})
	}
	victoria := servers[len(servers)-1]
	pushes = append(pushes, push.Options{
		Format: push.VictoriaMetrics, URL: "http://" + victoria.addr + "/api/v1/import/prometheus",
		Labels: map[string]string{"job": "text", "instance": "e2e"},
	})

	k := newKnowing(now, w.crowd)
	o := exporter.Options{Sampler: sampler.Options{Gatherer: k.gatherer(), MaxSeries: w.crowd + 1000}, Push: pushes}
	if len(w.steps) > 0 {
		o.Collector = collector.Options{Now: now}
	}
	if w.busy {
		o.Sampler.MaxDelay = 500 * time.Millisecond
	}
	x, err := exporter.New(o)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, x.Handler(), l, x.ConnState)
	stop := x.Start()
	defer func() { _ = stop() }()
	ways := []*samplerWay{
		{job: "seconds", page: x.Handler(), self: metricsPath},
		{job: "push", page: x.Handler(), self: metricsPath},
		{job: "text", only: victoria, page: x.Handler(), self: metricsPath},
	}
	if simple {
		mux := http.NewServeMux()
		page, err := prom.ServeSeconds(t.Context(), k.gatherer(), mux, prom.ServeOptions{MaxSeries: w.crowd + 1000})
		if err != nil {
			t.Fatal(err)
		}
		serve(t, mux, oneLine, page.ConnState)
		ways = append(ways, &samplerWay{job: "one-line", page: mux, self: secondsPath})
	}

	end, disturbed := w.live(k, x.Collector, &step, ways)
	deadline := time.Now().Add(catchUp)
	for _, server := range servers {
		for _, way := range ways {
			if way.only != nil && way.only != server {
				continue
			}
			t.Run(server.name+"/"+way.job, func(t *testing.T) {
				await(t, server, fmt.Sprintf("persecond_truth_orders_total_increase{job=%q}", way.job), end, deadline)
				k.check(t, server, way, end, disturbed)
			})
		}
		checkCounters(t, server)
	}
	return ways[0].missed
}

// occupy leaves the process one processor with a load of four seconds in eight, until relax is called.
func occupy() (relax func()) {
	before := runtime.GOMAXPROCS(1)
	var relaxed atomic.Bool
	go func() {
		for !relaxed.Load() {
			if time.Now().Unix()/4%2 == 0 {
				time.Sleep(10 * time.Millisecond)
			}
		}
	}()
	return func() {
		relaxed.Store(true)
		runtime.GOMAXPROCS(before)
	}
}

// live runs the service, each time after more than half of a second of its clock. It returns the second after the last
// one, and the seconds that may or may not contain their load. After a busy time the process continues until a whole
// second was sampled.
func (w watch) live(k *knowing, c *collector.Collector, step *atomic.Int64,
	ways []*samplerWay,
) (end int64, disturbed map[int64]bool) {
	open := func() int64 {
		line := c.Timeline()
		name, _ := line.WallTime(line.At(line.Now()).Index)
		return name.Unix()
	}
	const begins, ends = 600 * time.Millisecond, 950 * time.Millisecond // offsets in a second
	into := func() time.Duration { return time.Duration(k.now().Nanosecond()) }
	disturbed = map[int64]bool{}
	wait := func() {
		for at := into(); at < begins || at > begins+200*time.Millisecond; at = into() {
			time.Sleep((begins - at + time.Second) % time.Second)
		}
	}
	for open() < k.begin {
		wait()
		time.Sleep(ends - begins)
	}
	relax := func() {}
	if w.busy {
		relax = occupy()
	}
	whole := false
	for n := 1; n <= w.seconds || w.busy && !whole && n < 2*w.seconds; n++ {
		wait()
		second := open()
		for skipped := end; n > 1 && skipped < second; skipped++ { // a gauge keeps its value
			k.is("truth_length", "", skipped, k.truth["truth_length"][""][end-1])
		}
		k.live(second, second < end)
		if open() != second || into() < begins || into() > ends {
			disturbed[second], disturbed[second+1], disturbed[open()] = true, true, true
		}
		end = second + 1
		step.Add(int64(w.steps[n]))
		time.Sleep(ends - begins)
		wait()
		if n == w.seconds {
			relax()
		}
		missed := ways[0].missed
		ways[0].count()
		whole = n > w.seconds && ways[0].missed == missed
	}
	for _, way := range ways {
		way.count()
	}
	return end, disturbed
}

// sources lists the registries with their metrics. The first metric of each registry has a counter that counts in each
// second.
var sources = [][]string{
	{"truth_orders_total", "truth_hidden_total", "truth_seconds_count", "truth_seconds_sum", "truth_length"},
	{"truth_sent_total", "truth_reset_total", "truth_backend_total", "truth_old_total"},
	{"truth_slow_total"},
}

// check compares a database with the truth. The Sampler must have counted all absent values: the seconds without
// increases of a source, and, for other series, one increase per absence when the series returns.
func (k *knowing) check(t *testing.T, s *server, way *samplerWay, end int64, disturbed map[int64]bool) {
	t.Helper()
	right, absent, wrong, missing, away := 0, 0, 0, 0, 0
	for _, metrics := range sources {
		lost := map[int64]bool{}
		for _, metric := range metrics {
			want := k.truth[metric]
			seen := values{}
			name := "persecond_" + metric
			if metric != "truth_length" { // the only gauge
				name += "_increase"
			}
			for _, x := range s.query(t, fmt.Sprintf("%s{job=%q}[5m]", name, way.job)) {
				resource := x.Metric["resource"]
				if seen[resource] == nil {
					seen[resource] = map[int64]float64{}
				}
				for _, v := range x.Values {
					second := v.at / 1000
					if _, twice := seen[resource][second]; v.at%1000 != 0 || twice {
						t.Errorf("%s of %s has a sample at %d ms, or two", metric, resource, v.at)
					}
					seen[resource][second] = v.value
					if second < k.begin || second >= end || disturbed[second] {
						continue
					}
					if v.value == want[resource][second] {
						right++
						continue
					}
					wrong++
					t.Errorf("%s of %s is %v in second %d; it should be %v", metric, resource, v.value,
						second-k.begin, want[resource][second])
				}
			}
			if metric == metrics[0] {
				for second := k.begin; second < end; second++ {
					if _, ok := seen["steady"][second]; !ok && !disturbed[second] {
						lost[second] = true
					}
				}
			}
			for resource, counted := range want {
				is, explained := false, false // is: the series is absent
				for second := k.begin; second < end; second++ {
					if _, ok := seen[resource][second]; ok {
						if is && !explained {
							away++
						}
						is, explained = false, false
						continue
					}
					if counted[second] != 0 {
						is = true
						absent++
					}
					explained = explained || is && (lost[second] || disturbed[second])
				}
			}
		}
		for second := range lost {
			// If the source is empty, its series are away instead of missing.
			if troubles[second-k.begin] != "is empty" || metrics[0] != "truth_slow_total" {
				missing++
			}
		}
	}
	if len(k.crowd) > 0 {
		r, m, a, w := k.checkCrowd(t, s, way, end, disturbed)
		right, missing, away, wrong = right+r, missing+m, away+a, wrong+w
	}
	t.Logf("%d cells are right, %d absent, %d wrong; %d seconds of %v missed, %d times away of %v increases "+
		"unplaced, %d seconds of load late",
		right, absent, wrong, missing, way.missed, away, way.unplaced, len(disturbed))
	if float64(missing+away) > way.missed+way.unplaced { // the first second of a source without values is unplaced
		t.Errorf("more is absent than was counted")
	}
	if right < 100 {
		t.Errorf("only %d cells are there", right)
	}
}

// checkCrowd has the database count the additional series by their values in each second.
func (k *knowing) checkCrowd(t *testing.T, s *server, way *samplerWay, end int64,
	disturbed map[int64]bool,
) (right, missing, away, wrong int) {
	t.Helper()
	n := map[int64]int{}
	expression := fmt.Sprintf(
		`count_values("value", last_over_time(persecond_truth_crowd_total_increase{job=%q}[900ms]))`,
		way.job,
	)
	for _, x := range s.queryRange(t, expression, k.begin, end-1, 1) {
		for _, v := range x.Values {
			second := v.at / 1000
			if disturbed[second] {
				continue
			}
			n[second] += int(v.value)
			if value, err := strconv.ParseFloat(x.Metric["value"], 64); err != nil ||
				value != min(k.truth["truth_orders_total"]["steady"][second], 1) {
				wrong += int(v.value)
				t.Errorf("%v of many are %s in second %d", v.value, x.Metric["value"], second-k.begin)
			}
		}
	}
	t.Logf("%d series were counted in %d seconds", len(k.crowd), len(n))
	if len(n) == 0 {
		t.Error("none of many is there")
	}
	for second := k.begin; second < end; second++ {
		right += n[second]
		switch {
		case disturbed[second]:
		case n[second] == 0:
			missing++
		default:
			away += len(k.crowd) - n[second]
		}
	}
	return right - wrong, missing, away, wrong
}
