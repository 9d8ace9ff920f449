package e2e

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// knowing is a service that counts with client_golang, has every kind of faulty metric, and keeps the true counts of
// each second.
type knowing struct {
	now    func() time.Time
	begin  int64
	mu     sync.Mutex
	truth  map[string]values // by metric
	consts map[string]float64
	shown  map[string]bool // state of the constant metrics

	orders, hidden, slow *prometheus.CounterVec
	durations            *prometheus.HistogramVec
	length               prometheus.Gauge
	crowd                []prometheus.Counter // in the last registry; each counts one in each second
	registries           [4]*prometheus.Registry
}

func newKnowing(now func() time.Time, crowd int) *knowing {
	vec := func(name string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: "x"}, []string{"resource"})
	}
	k := &knowing{
		now: now, begin: now().Unix() + 2,
		truth: map[string]values{}, consts: map[string]float64{}, shown: map[string]bool{},
		orders: vec("truth_orders_total"), hidden: vec("truth_hidden_total"), slow: vec("truth_slow_total"),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "truth_seconds", Help: "x"},
			[]string{"resource"}),
		length: prometheus.NewGauge(prometheus.GaugeOpts{Name: "truth_length", Help: "x"}),
	}
	for i := range k.registries {
		k.registries[i] = prometheus.NewRegistry()
	}
	k.registries[0].MustRegister(k.orders, k.hidden, k.durations, k.length)
	k.registries[1].MustRegister(k)
	k.registries[2].MustRegister(k.slow)
	all := vec("truth_crowd_total")
	k.registries[3].MustRegister(all)
	for i := range crowd {
		k.crowd = append(k.crowd, all.WithLabelValues(fmt.Sprint("of many ", i)))
	}
	return k
}

// Describe implements [prometheus.Collector].
func (*knowing) Describe(chan<- *prometheus.Desc) {}

// Collect implements [prometheus.Collector]. The metrics are constant. The old metrics have a creation time of an hour
// ago, and the others have none.
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
			to <- prometheus.MustNewConstMetricWithCreatedTimestamp(desc, prometheus.CounterValue, v,
				time.Unix(k.begin-3600, 0), resource)
		} else {
			to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, v, resource)
		}
	}
}

// troubles holds the seconds in which the third registry misbehaves, and how.
var troubles = map[int64]string{8: "fails", 16: "is slow", 24: "takes more than a second", 30: "panics", 35: "is empty"}

// troubled gathers the third registry.
func (k *knowing) troubled() ([]*dto.MetricFamily, error) {
	switch troubles[k.now().Unix()-1-k.begin] {
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

// gatherer has each registry sampled by itself.
func (k *knowing) gatherer() prometheus.Gatherer {
	return prometheus.Gatherers{
		prometheus.Gatherers{k.registries[0], k.registries[1]},
		prometheus.GathererFunc(k.troubled), k.registries[3],
	}
}

// is records the counts of a second.
func (k *knowing) is(metric, resource string, second int64, n float64) float64 {
	if k.truth[metric] == nil {
		k.truth[metric] = values{}
	}
	if k.truth[metric][resource] == nil {
		k.truth[metric][resource] = map[int64]float64{}
	}
	k.truth[metric][resource][second] += n
	return n
}

// live makes the calls of a second. In a long second, it makes the calls again.
func (k *knowing) live(second int64, again bool) {
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
	for _, c := range k.crowd {
		c.Inc()
	}
	add(k.orders, "truth_orders_total", "steady", n)
	add(k.slow, "truth_slow_total", "steady", n)
	constant("truth_sent_total", "steady", n)
	k.shown["truth_sent_total steady"] = true
	if again {
		return
	}
	k.length.Set(k.is("truth_length", "", second, n))
	if i%5 == 2 {
		add(k.orders, "truth_orders_total", fmt.Sprint("new ", i), 100+n)
		for range 100 {
			k.durations.WithLabelValues(fmt.Sprint("new ", i)).Observe(0.5)
		}
		k.is("truth_seconds_count", fmt.Sprint("new ", i), second, 100)
		k.is("truth_seconds_sum", fmt.Sprint("new ", i), second, 50)
	}
	if i%7 == 3 { // with a higher value than before, and a lower one
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
		_ = k.registries[0].Register(k.hidden) // already registered if the seconds before were skipped
	}
	add(k.hidden, "truth_hidden_total", "steady", n)

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
