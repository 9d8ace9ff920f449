package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/windowstat/windowstat/exporter/prom"
)

// Load of the service of [TestClientGolang].
const (
	ordersSeconds = 50 // seconds with orders, or three times as many on a busy machine
	ordersUsual   = 10 // orders in each of these seconds
	ordersBurst   = 5000
)

// bursts reports whether a second has a burst. Several seconds have one, because the machine may stall in a second. A
// Sampler does not report the counts of a second whose end it missed.
func bursts(k int64) bool { return k%35 == 6 }

// TestClientGolang runs a service that counts only with client_golang, and adds one line for its seconds. At a scrape
// interval of 15 s the servers must have the full height of the busiest second.
func TestClientGolang(t *testing.T) {
	t.Parallel()
	orders := prometheus.NewCounter(prometheus.CounterOpts{Name: "shop_orders_total", Help: "Orders."})
	depth := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "shop.depth", Help: "Depth.", ConstLabels: prometheus.Labels{"k8s.pod": "a"},
	})
	depth.Set(7)
	registry := prometheus.NewRegistry()
	registry.MustRegister(orders, depth)
	mux := http.NewServeMux()
	mux.Handle(metricsPath, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	sleepUntil(t.Context(), middle(time.Now().Unix()+1).Add(-400*time.Millisecond)) // early in a second
	begin := time.Now().Unix()

	seconds, err := prom.ServeSeconds(t.Context(), registry, mux, prom.ServeOptions{})
	if err != nil {
		t.Fatal(err)
	}

	l := listen(t, "127.0.0.1:0")
	serve(t, mux, l, seconds.ConnState)
	targets := []string{l.Addr().String()}
	servers := startServers(t,
		job{name: "seconds", path: secondsPath, targets: targets, interval: 15 * time.Second},
		job{name: "metrics", path: metricsPath, targets: targets, interval: 15 * time.Second})
	want := values{"": {}}
	opened := time.Now().Unix() + 1
	for second := begin; second < opened; second++ {
		want[""][second] = 0 // the servers were starting
	}
	late, k, whole := 0, int64(0), false // whole: a burst was sampled completely
	for ; k < ordersSeconds || k < 3*ordersSeconds && (!whole || undisturbed(k, late, mux) < leastUndisturbed); k++ {
		second := opened + k
		n := float64(ordersUsual)
		switch {
		case bursts(k):
			n = ordersBurst
		case bursts(k + 1), bursts(k - 1):
			n = 0 // calls that are a second late do not change the burst
		}
		late += inMiddle(t, second, func() { orders.Add(n) })
		want[""][second] = n
		whole = whole ||
			strings.Contains(
				sampled(mux, "?window=60s"),
				fmt.Sprintf("\npersecond_shop_orders_total_increase %d ", ordersBurst),
			)
	}
	if n := undisturbed(k, late, mux); n < leastUndisturbed {
		t.Errorf("only %d seconds of %d were not disturbed", n, k)
	}

	deadline := time.Now().Add(catchUp)
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			await(t, s, "persecond_shop_orders_total_increase", opened+k, deadline)
			checkSampled(t, s, "persecond_shop_orders_total_increase[5m]", want, opened+k, late)
			if peak := s.number(t, "max_over_time(persecond_shop_orders_total_increase[5m])"); peak != ordersBurst {
				t.Errorf("the busiest second of %s has %v orders; it should have %d", s.name, peak, ordersBurst)
			}
			// A server that accepts every name has the name of the gauge; others have the escaped form.
			const named = `last_over_time({__name__=~"persecond_shop[.]depth|U__persecond__shop_2e_depth"}[5m])`
			if depth := s.number(t, named); depth != 7 {
				t.Errorf("the gauge shop.depth is %v, want 7", depth)
			}
			rate := s.number(t, "max_over_time(rate(shop_orders_total[30s])[5m:1s])")
			t.Logf("rate over 30s has a peak of %.1f orders a second: too low by a factor of %.1f", rate,
				ordersBurst/rate)
			checkCounters(t, s)
		})
	}
}

// inMiddle calls f in the middle of a second. It returns 1 if the machine stalled, because f may then have run at the
// end of the second or in the next one.
func inMiddle(t *testing.T, second int64, f func()) (late int) {
	sleepUntil(t.Context(), middle(second))
	f()
	if time.Since(middle(second)) > 400*time.Millisecond {
		return 1
	}
	return 0
}

// leastUndisturbed is the number of seconds that other work on this machine must not disturb.
const leastUndisturbed = 30

// sampled is the per-second page of the sampled metrics.
func sampled(h http.Handler, query string) string {
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, secondsPath+query, nil))
	return answer.Body.String()
}

// undisturbed returns the number of seconds that are certain: the load was punctual, and the Sampler was punctual and
// missed none.
func undisturbed(seconds int64, late int, h http.Handler) int64 {
	found := parsePage([]byte(sampled(h, "?window=1s")))
	return seconds - int64(late) - int64(
		found["windowstat_sampler_late_total"]+found["windowstat_sampler_missed_seconds_total"])
}

// checkSampled is checkSamples for a Sampler. If the Sampler reports a delayed or missed second because the machine
// stalled, this second and the next one may be wrong. A second with delayed load may be wrong, too.
func checkSampled(t *testing.T, s *server, selector string, want values, end int64, late int) {
	t.Helper()
	// Evaluate at the next second: the scrape with the last seconds has a timestamp in the middle of the current one.
	missed := s.queryAt(t, "max(windowstat_sampler_late_total) + max(windowstat_sampler_missed_seconds_total)",
		float64(time.Now().Unix()+1))
	if len(missed) != 1 {
		t.Fatalf("%s has %d results for the missed seconds of the Sampler", s.name, len(missed))
	}
	disturbed := float64(late) + missed[0].Value.value
	if disturbed == 0 {
		checkSamples(t, s, selector, want, end)
		return
	}
	most := 2 * int(disturbed) * len(want)
	_, wrong := compareSamples(t, s, selector, want, end)
	for len(wrong) > most && time.Now().Before(s.comesUntil) { // or the server does not show all samples yet
		time.Sleep(200 * time.Millisecond)
		s.show(t)
		_, wrong = compareSamples(t, s, selector, want, end)
	}
	t.Logf("%d seconds of load and %v samplings were late or missed, and %s is wrong in %d places", late,
		disturbed-float64(late), selector, len(wrong))
	if len(wrong) > most {
		t.Errorf("%s: %s is wrong in %d places; reported delays explain at most %d:\n%s", s.name, selector, len(wrong),
			most, strings.Join(wrong[:min(len(wrong), 10)], "\n"))
	}
}

// Load of the service of [TestNewLabelValues].
const (
	shops     = 12 // or three times as many on a busy machine
	shopEvery = 5  // seconds
)

// TestNewLabelValues runs a service that counts only with client_golang and with its own collectors. The database must
// have each label value from its first second, with all counts of that second.
func TestNewLabelValues(t *testing.T) {
	t.Parallel()
	orders := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "shop_orders_total", Help: "Orders."},
		[]string{"resource"})
	durations := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "shop_order_seconds", Help: "Durations."},
		[]string{"resource"})
	registry := prometheus.NewRegistry()
	registry.MustRegister(orders, durations, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()

	seconds, err := prom.ServeSeconds(t.Context(), registry, mux, prom.ServeOptions{})
	if err != nil {
		t.Fatal(err)
	}

	l := listen(t, "127.0.0.1:0")
	serve(t, mux, l, seconds.ConnState)
	servers := startServers(t, job{
		name: "seconds", path: secondsPath, targets: []string{l.Addr().String()},
		interval: 15 * time.Second,
	})
	want := values{}
	begin := time.Now().Unix() + 2
	late, k := 0, int64(0)
	for ; k < shops || k < 3*shops && undisturbed(k*shopEvery, late, mux) < leastUndisturbed; k++ {
		second := begin + k*shopEvery
		shop, n := fmt.Sprint("shop ", k), 100+k
		late += inMiddle(t, second, func() {
			orders.WithLabelValues(shop).Add(float64(n))
			for range n {
				durations.WithLabelValues(shop).Observe(0.5)
			}
		})
		want[shop] = map[int64]float64{second: float64(n)}
	}
	if n := undisturbed(k*shopEvery, late, mux); n < leastUndisturbed {
		t.Errorf("only %d seconds of %d were not disturbed", n, k*shopEvery)
	}
	end := begin + k*shopEvery
	for k := range k {
		for after := begin + k*shopEvery + 1; after < end; after++ {
			want[fmt.Sprint("shop ", k)][after] = 0
		}
	}

	deadline := time.Now().Add(shopEvery*time.Second + catchUp)
	for _, s := range servers {
		t.Run(s.name, func(t *testing.T) {
			for _, metric := range []string{
				"persecond_shop_orders_total_increase", "persecond_shop_order_seconds_count_increase",
			} {
				await(t, s, metric, end, deadline)
				checkSampled(t, s, metric+"[5m]", want, end, late)
			}
			memory := `{__name__=~"persecond_go_memstats_alloc_bytes(_total_increase)?"}`
			if n := s.number(t, `count(last_over_time(`+memory+`[5m]))`); n != 2 {
				t.Errorf("%s has %v series of the Go runtime's allocations; there are 2", s.name, n)
			}
			checkCounters(t, s)
		})
	}
}
