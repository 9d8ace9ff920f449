package bench

import (
	"fmt"
	"time"

	"github.com/VictoriaMetrics/metrics"
)

// victoria holds the metrics of one resource. The count of the histogram is the number of completions. The library has
// no windows.
type victoria struct {
	pass     *metrics.Counter
	inFlight *metrics.Gauge
	rt       interface{ Update(seconds float64) }
}

// newVictoriaLE uses the histogram with client_golang's default bounds.
func newVictoriaLE(names []string) (Recorder, error) {
	set := metrics.NewSet()
	return victorias(names, set, func(name string) interface{ Update(seconds float64) } {
		return set.NewPrometheusHistogram(name)
	}), nil
}

// newVictoriaRange uses VictoriaMetrics's own histogram, whose buckets are created at their first value.
func newVictoriaRange(names []string) (Recorder, error) {
	set := metrics.NewSet()
	return victorias(names, set, func(name string) interface{ Update(seconds float64) } {
		return set.NewHistogram(name)
	}), nil
}

func victorias(names []string, set *metrics.Set,
	histogram func(name string) interface{ Update(seconds float64) },
) Recorder {
	list := make([]victoria, len(names))
	for i, name := range names {
		list[i] = victoria{
			pass:     set.NewCounter(fmt.Sprintf("calls_total{resource=%q}", name)),
			inFlight: set.NewGauge(fmt.Sprintf("calls_in_flight{resource=%q}", name), nil),
			rt:       histogram(fmt.Sprintf("call_duration_seconds{resource=%q}", name)),
		}
	}
	return Recorder{
		Call: func(i int) {
			v := &list[i]
			v.pass.Inc()
			v.inFlight.Inc()
			start := Now()
			v.rt.Update((Now() - start).Seconds())
			v.inFlight.Dec()
		},
		Took: func(i int, rt time.Duration) {
			v := &list[i]
			v.pass.Inc()
			v.inFlight.Inc()
			v.rt.Update(rt.Seconds())
			v.inFlight.Dec()
		},
		Keep: set,
	}
}
