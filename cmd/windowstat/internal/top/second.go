package top

import "math"

// metric is one of the values of a second.
type metric int

const (
	pass metric = iota
	peak
	block
	exception
	complete
	rtSum
	rtP99
	inFlight
	metrics // how many there are
)

// onPage are the names of the metrics at the per-second endpoint.
var onPage = [metrics]string{
	"persecond_pass", "persecond_pass_peak", "persecond_block", "persecond_exception",
	"persecond_complete", "persecond_rt_sum_seconds", "persecond_rt_p99_seconds", "persecond_in_flight",
}

// second is a finished second. Unknown values are NaN.
type second struct {
	unix   int64
	values [metrics]float64
}

func unknown(unix int64) second {
	s := second{unix: unix}
	for m := range s.values {
		s.values[m] = math.NaN()
	}
	return s
}

// mean returns the average response time in seconds, NaN if no call ended.
func (s *second) mean() float64 {
	if !(s.values[complete] > 0) {
		return math.NaN()
	}
	return s.values[rtSum] / s.values[complete]
}

// add adds another resource's second to a total. Quantiles and peaks do not add up.
func (s *second) add(other *second) {
	for _, m := range [...]metric{pass, block, complete, exception, inFlight, rtSum} {
		switch v := other.values[m]; {
		case math.IsNaN(v):
		case math.IsNaN(s.values[m]):
			s.values[m] = v
		default:
			s.values[m] += v
		}
	}
}

// sample is one value of a resource in a second.
type sample struct {
	resource string
	unix     int64
	metric   metric
	value    float64
}
