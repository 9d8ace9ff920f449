package bench

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// vectors holds the metrics of an instrumented service: a counter of passes, a gauge of calls in flight, and a
// histogram whose count is the number of completions. client_golang has no windows.
type vectors struct {
	registry *prometheus.Registry
	pass     *prometheus.CounterVec
	inFlight *prometheus.GaugeVec
	rt       *prometheus.HistogramVec
}

func newVectors(rt prometheus.HistogramOpts) (vectors, error) {
	labels := []string{"resource"}
	rt.Name = "call_duration_seconds"
	v := vectors{
		registry: prometheus.NewRegistry(),
		pass:     prometheus.NewCounterVec(prometheus.CounterOpts{Name: "calls_total"}, labels),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "calls_in_flight"}, labels),
		rt:       prometheus.NewHistogramVec(rt, labels),
	}
	for _, c := range []prometheus.Collector{v.pass, v.inFlight, v.rt} {
		if err := v.registry.Register(c); err != nil {
			return vectors{}, err
		}
	}
	return v, nil
}

// classic is a histogram with the eleven default bounds.
func classic() prometheus.HistogramOpts {
	return prometheus.HistogramOpts{Buckets: prometheus.DefBuckets}
}

// native is a native histogram of schema 3, as fine as windowstat's.
func native() prometheus.HistogramOpts {
	return prometheus.HistogramOpts{NativeHistogramBucketFactor: 1.1, NativeHistogramMaxBucketNumber: 160}
}

func newClassic(names []string) (Recorder, error) { return byHandle(names, classic()) }
func newNative(names []string) (Recorder, error)  { return byHandle(names, native()) }

func newClassicByLabel(names []string) (Recorder, error) { return byLabel(names, classic()) }
func newNativeByLabel(names []string) (Recorder, error)  { return byLabel(names, native()) }

// byHandle resolves the labels once, as optimized services do.
func byHandle(names []string, rt prometheus.HistogramOpts) (Recorder, error) {
	type handles struct {
		pass     prometheus.Counter
		inFlight prometheus.Gauge
		rt       prometheus.Observer
	}
	v, err := newVectors(rt)
	if err != nil {
		return Recorder{}, err
	}
	list := make([]handles, len(names))
	for i, name := range names {
		list[i] = handles{v.pass.WithLabelValues(name), v.inFlight.WithLabelValues(name), v.rt.WithLabelValues(name)}
	}
	return Recorder{
		Call: func(i int) {
			h := &list[i]
			h.pass.Inc()
			h.inFlight.Inc()
			start := Now()
			h.rt.Observe((Now() - start).Seconds())
			h.inFlight.Dec()
		},
		Took: func(i int, rt time.Duration) {
			h := &list[i]
			h.pass.Inc()
			h.inFlight.Inc()
			h.rt.Observe(rt.Seconds())
			h.inFlight.Dec()
		},
		Keep: v.registry,
	}, nil
}

// byLabel resolves the labels for each call, as most services do.
func byLabel(names []string, rt prometheus.HistogramOpts) (Recorder, error) {
	v, err := newVectors(rt)
	if err != nil {
		return Recorder{}, err
	}
	return Recorder{Call: func(i int) {
		name := names[i]
		v.pass.WithLabelValues(name).Inc()
		v.inFlight.WithLabelValues(name).Inc()
		start := Now()
		v.rt.WithLabelValues(name).Observe((Now() - start).Seconds())
		v.inFlight.WithLabelValues(name).Dec()
	}}, nil
}
