package e2e

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/prom"
	"github.com/windowstat/windowstat/exporter/push"
	"github.com/windowstat/windowstat/exporter/sampler"
)

// knowing is a service that counts with client_golang, has every trouble that its metrics may have, and knows what it counted in
// each second.
type knowing struct {
	mu     sync.Mutex
	begin  int64
	truth  map[string]values // by metric
	consts map[string]float64
	shown  map[string]bool // of the constant metrics

	orders, hidden, slow *prometheus.CounterVec
	durations            *prometheus.HistogramVec
	length               prometheus.Gauge
	registries           [3]*prometheus.Registry
}

func newKnowing() *knowing {
	vec := func(name string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: "x"}, []string{"resource"})
	}
	k := &knowing{
		truth: map[string]values{}, consts: map[string]float64{}, shown: map[string]bool{},
		orders: vec("truth_orders_total"), hidden: vec("truth_hidden_total"), slow: vec("truth_slow_total"),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "truth_seconds", Help: "x"}, []string{"resource"}),
		length:    prometheus.NewGauge(prometheus.GaugeOpts{Name: "truth_length", Help: "x"}),
	}
	for i := range k.registries {
		k.registries[i] = prometheus.NewRegistry()
	}
	k.registries[0].MustRegister(k.orders, k.hidden, k.durations, k.length)
	k.registries[1].MustRegister(k)
	k.registries[2].MustRegister(k.slow)
	return k
}

// Describe implements [prometheus.Collector].
func (*knowing) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector]. The metrics are constant: those called old are from an hour ago, the others do not say.
func (k *knowing) Collect(to chan<- prometheus.Metric) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for key, v := range k.consts {
		if !k.shown[key] {
			continue
		}
		name, resource, _ := strings.Cut(key, " ")
		desc := prometheus.NewDesc(name, "x", []string{"resource"}, nil)
		if name == "truth_old_total" {
			to <- prometheus.MustNewConstMetricWithCreatedTimestamp(desc, prometheus.CounterValue, v, time.Unix(k.begin-3600, 0), resource)
		} else {
			to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, v, resource)
		}
	}
}

// troubles are the seconds whose gathering of the third registry is none.
var troubles = map[int64]string{8: "fails", 16: "is slow", 24: "takes more than a second", 30: "panics", 35: "is empty"}

// troubled gathers the third registry.
func (k *knowing) troubled() ([]*dto.MetricFamily, error) {
	switch troubles[time.Now().Unix()-1-k.begin] {
	case "fails":
		return nil, errors.New("fails")
	case "is slow":
		time.Sleep(600 * time.Millisecond)
	case "takes more than a second":
		time.Sleep(1200 * time.Millisecond)
	case "panics":
		panic("panics")
	case "is empty":
		return nil, nil
	}
	return k.registries[2].Gather()
}

// is notes what was counted in a second.
func (k *knowing) is(metric, resource string, second int64, n float64) float64 {
	if k.truth[metric] == nil {
		k.truth[metric] = values{}
	}
	if k.truth[metric][resource] == nil {
		k.truth[metric][resource] = map[int64]float64{}
	}
	k.truth[metric][resource][second] = n
	return n
}

// live is what happens in a second.
func (k *knowing) live(second int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	i := second - k.begin
	n := float64(10 + i*i%17)
	add := func(v *prometheus.CounterVec, name, resource string, n float64) {
		v.WithLabelValues(resource).Add(k.is(name, resource, second, n))
	}
	constant := func(name, resource string, n float64) {
		k.consts[name+" "+resource] += k.is(name, resource, second, n)
	}
	k.length.Set(k.is("truth_length", "", second, n))
	add(k.orders, "truth_orders_total", "steady", n)
	add(k.slow, "truth_slow_total", "steady", n)
	if i%5 == 2 {
		add(k.orders, "truth_orders_total", fmt.Sprint("new ", i), 100+n)
		for range 100 {
			k.durations.WithLabelValues(fmt.Sprint("new ", i)).Observe(0.5)
		}
		k.is("truth_seconds_count", fmt.Sprint("new ", i), second, 100)
		k.is("truth_seconds_sum", fmt.Sprint("new ", i), second, 50)
	}
	if i%7 == 3 { // with more than it had, and with less
		k.orders.DeleteLabelValues("anew")
		add(k.orders, "truth_orders_total", "anew", 1000*float64(i%2)+n)
	} else {
		add(k.orders, "truth_orders_total", "anew", 3)
	}
	switch i % 9 {
	case 4:
		k.registries[0].Unregister(k.hidden)
		add(k.hidden, "truth_hidden_total", fmt.Sprint("new ", i), 400)
	case 6:
		k.registries[0].MustRegister(k.hidden)
	}
	add(k.hidden, "truth_hidden_total", "steady", n)

	constant("truth_sent_total", "steady", n)
	k.shown["truth_sent_total steady"] = true
	constant("truth_sent_total", "back", n)
	k.shown["truth_sent_total back"] = i < 10 || i > 14
	if i%6 == 5 {
		constant("truth_sent_total", fmt.Sprint("new ", i), 30)
		k.shown[fmt.Sprint("truth_sent_total new ", i)] = true
	}
	k.shown["truth_reset_total x"] = true
	if constant("truth_reset_total", "x", n); i == 20 {
		k.consts["truth_reset_total x"] = 3
	}
	constant("truth_backend_total", "x", n)
	constant("truth_old_total", "x", n)
	if i == 0 {
		k.consts["truth_backend_total x"], k.consts["truth_old_total x"] = 5e8, 1e9
	}
	k.shown["truth_backend_total x"], k.shown["truth_old_total x"] = i >= 12, i >= 18
}

// TestSamplerTruth has a service that knows its truth scraped, and push. Each cell in each database is right, or absent and counted;
// none is made up.
func TestSamplerTruth(t *testing.T) {
	t.Parallel()
	const length = 42
	k := newKnowing()
	c, err := collector.New(collector.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := sampler.New(c, sampler.Options{
		Gatherer: prometheus.Gatherers{prometheus.Gatherers{k.registries[0], k.registries[1]}, prometheus.GathererFunc(k.troubled)},
	})
	if err != nil {
		t.Fatal(err)
	}
	page, err := prom.NewSeconds(c, prom.SecondsOptions{Sampler: s})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(secondsPath, page)
	l := listen(t, "127.0.0.1:0")
	serve(t, mux, l)
	servers := startServers(t, job{name: "seconds", path: secondsPath, targets: []string{l.Addr().String()}, interval: 5 * time.Second})
	stops := []func() error{s.Start()}
	for _, server := range servers {
		p, err := push.New(c, push.Options{URL: "http://" + server.addr + "/api/v1/write", Labels: map[string]string{"job": "push", "instance": "e2e"}, Sampler: s})
		if err != nil {
			t.Fatal(err)
		}
		stops = append(stops, p.Start())
	}
	defer func() {
		for _, stop := range stops {
			_ = stop()
		}
	}()

	k.begin = time.Now().Unix() + 2
	disturbed := map[int64]bool{} // whether the load was in that second is not known
	for second := k.begin; second < k.begin+length; second++ {
		sleepUntil(t.Context(), middle(second))
		k.live(second)
		if time.Since(middle(second)) > 450*time.Millisecond {
			disturbed[second], disturbed[second+1] = true, true
		}
	}
	end := k.begin + length
	deadline := time.Now().Add(catchUp)
	for _, server := range servers {
		for _, way := range []string{"seconds", "push"} {
			t.Run(server.name+"/"+way, func(t *testing.T) {
				await(t, server, fmt.Sprintf("persecond_truth_orders_total{job=%q}", way), end, deadline)
				n := map[string]float64{}
				for _, m := range c.Metrics() {
					if m.Value != nil {
						n[m.Name] = m.Value()
					}
				}
				k.check(t, server, way, end, disturbed, n)
			})
		}
		checkCounters(t, server)
	}
}

// check compares what a database has with the truth.
func (k *knowing) check(t *testing.T, s *server, way string, end int64, disturbed map[int64]bool, n map[string]float64) {
	t.Helper()
	const expected = 2 + 2 + 3 + 2 // what the troubles cost
	missed, unplaced := n["sampler_missed_seconds_total"], n["sampler_unplaced_increases_total"]
	right, absent := 0, 0
	for metric, want := range k.truth {
		seen := map[string]map[int64]bool{}
		for _, x := range s.query(t, fmt.Sprintf("persecond_%s{job=%q}[5m]", metric, way)) {
			resource := x.Metric["resource"]
			if seen[resource] == nil {
				seen[resource] = map[int64]bool{}
			}
			for _, v := range x.Values {
				second := v.at / 1000
				if second < k.begin || second >= end || disturbed[second] {
					continue
				}
				if v.at%1000 != 0 || seen[resource][second] {
					t.Errorf("%s of %s has a sample at %d ms, or two", metric, resource, v.at)
				}
				seen[resource][second] = true
				if v.value != want[resource][second] {
					t.Errorf("%s of %s is %v in second %d; it should be %v", metric, resource, v.value, second-k.begin, want[resource][second])
				}
				right++
			}
		}
		for resource, seconds := range want {
			for second, v := range seconds {
				if v == 0 || seen[resource][second] || disturbed[second] {
					continue
				}
				absent++
				if missed == expected && (resource == "steady" && (metric == "truth_orders_total" || metric == "truth_sent_total" && second > k.begin) || metric == "truth_length") {
					t.Errorf("%s of %s is absent in second %d", metric, resource, second-k.begin)
				}
			}
		}
	}
	t.Logf("%d cells are right, %d absent; %v seconds were missed (%d by the troubles), %v increases unplaced, %v late, %d seconds of load late",
		right, absent, missed, expected, unplaced, n["sampler_late_total"], len(disturbed))
	if missed < expected || unplaced == 0 {
		t.Errorf("%v seconds were missed, at least %d should be; %v increases are unplaced", missed, expected, unplaced)
	}
	if right < 150 {
		t.Errorf("only %d cells are there", right)
	}
}
