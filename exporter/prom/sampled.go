package prom

import (
	"cmp"
	"iter"
	"math"
	"regexp"
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"

	"github.com/windowstat/windowstat/exporter"
)

// sampled is a series with its values of the last seconds.
type sampled struct {
	family        *exporter.Family
	names, values []string
	key           string
	counter       bool

	ring     []float64 // by index modulo history; NaN where there is none
	from     int64     // the second since which the ring has values
	to       int64     // and before which
	total    float64   // of a counter, when it was gathered last
	gathered int64     // the second of that
}

// record adds what was gathered at the end of a second. Holds mu.
func (s *Sampler) record(second int64, families []*dto.MetricFamily) {
	s.left = 0
	var key []byte
	for _, f := range families {
		for _, m := range f.Metric {
			if !s.known(f, m) {
				s.left++
				continue
			}
			switch {
			case m.Counter != nil:
				key = s.sample(key, second, strings.TrimSuffix(f.GetName(), "_total"), f, m, m.Counter.GetValue(), true)
			case m.Gauge != nil:
				key = s.sample(key, second, f.GetName(), f, m, m.Gauge.GetValue(), false)
			case m.Untyped != nil:
				key = s.sample(key, second, f.GetName(), f, m, m.Untyped.GetValue(), false)
			case m.Histogram != nil:
				key = s.sample(key, second, f.GetName()+"_count", f, m, count(m.Histogram), true)
				key = s.sample(key, second, f.GetName()+"_sum", f, m, m.Histogram.GetSampleSum(), true)
			case m.Summary != nil:
				key = s.sample(key, second, f.GetName()+"_count", f, m, float64(m.Summary.GetSampleCount()), true)
				key = s.sample(key, second, f.GetName()+"_sum", f, m, m.Summary.GetSampleSum(), true)
			}
		}
	}
	s.forget(second)
}

// count is how many observations a histogram has.
func count(h *dto.Histogram) float64 {
	if h.GetSampleCountFloat() > 0 {
		return h.GetSampleCountFloat()
	}
	return float64(h.GetSampleCount())
}

var (
	validMetric = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	validName   = validMetric.MatchString
)

// known reports whether names are such that every server takes them.
func (s *Sampler) known(f *dto.MetricFamily, m *dto.Metric) bool {
	if !validName(f.GetName()) {
		return false
	}
	for _, l := range m.Label {
		if !validName(l.GetName()) {
			return false
		}
	}
	return true
}

// sample adds a value to a series, and makes it if need be. The key is memory to use again.
func (s *Sampler) sample(key []byte, second int64, name string, f *dto.MetricFamily, m *dto.Metric, v float64, counter bool) []byte {
	key = append(append(key[:0], s.opts.Prefix...), name...)
	full := len(key)
	for _, l := range m.Label {
		key = append(append(append(append(key, 0), l.GetName()...), 0), l.GetValue()...)
	}
	x := s.series[string(key)]
	if x == nil {
		x = s.open(string(key[:full]), string(key), f, m, counter)
		if x == nil {
			s.left++
			return key
		}
		if s.previous == second-1 {
			x.gathered = second - 1 // it was not there then: its total was zero
		}
	}
	if x.counter != counter || x.to > second {
		s.left++ // two names became one
		return key
	}
	if !counter {
		s.put(x, second, v)
		return key
	}
	added := v - x.total
	if added < 0 {
		added = v // it began again
	}
	if x.gathered == second-1 {
		s.put(x, second, added)
	}
	x.total, x.gathered = v, second
	return key
}

// put sets the value of a second, if nobody can have been told that there is none. Holds mu.
func (s *Sampler) put(x *sampled, second int64, v float64) {
	if s.previous != never {
		x.put(second, v, int(s.history()))
	}
}

// open makes a series, if there is room. Holds mu.
func (s *Sampler) open(name, key string, f *dto.MetricFamily, m *dto.Metric, counter bool) *sampled {
	if len(s.series) >= s.opts.MaxSeries {
		return nil
	}
	family := s.families[name]
	if family == nil {
		help := strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(f.GetHelp())
		if counter {
			help = "Added in this second: " + help
		} else {
			help = "At the end of this second: " + help
		}
		family = &exporter.Family{Name: name, Type: exporter.Gauge, Help: help}
		s.families[name] = family
	}
	x := &sampled{family: family, key: key, counter: counter, gathered: math.MinInt64, from: math.MinInt64, to: math.MinInt64}
	for _, l := range m.Label {
		x.names, x.values = append(x.names, l.GetName()), append(x.values, l.GetValue())
	}
	s.series[key] = x
	i, _ := slices.BinarySearchFunc(s.order, key, func(a *sampled, key string) int { return cmp.Compare(a.key, key) })
	s.order = slices.Insert(s.order, i, x)
	return x
}

// forget drops the series that have no value any more. Holds mu.
func (s *Sampler) forget(second int64) {
	history := s.history()
	s.order = slices.DeleteFunc(s.order, func(x *sampled) bool {
		if x.counter && x.gathered >= second-history || x.to >= second-history {
			return false
		}
		delete(s.series, x.key)
		return true
	})
}

// history is how many seconds are kept.
func (s *Sampler) history() int64 { return int64(s.stats.History().Seconds()) }

// put sets the value of a second, which must not be before one that was set.
func (x *sampled) put(second int64, v float64, size int) {
	if x.from == math.MinInt64 || second-x.to >= int64(size) {
		x.from, x.to, x.ring = second, second, x.ring[:0]
	}
	for ; x.to <= second; x.to++ {
		at := math.NaN()
		if x.to == second {
			at = v
		}
		if len(x.ring) < size {
			x.ring = append(x.ring, at)
		} else {
			x.ring[(x.to-x.from)%int64(size)] = at
		}
	}
}

// seconds iterates over the values of the seconds from from to before to.
func (x *sampled) seconds(from, to int64) iter.Seq2[int64, float64] {
	return func(yield func(int64, float64) bool) {
		size := int64(len(x.ring)) // as long as it grows there is no turn
		for i := max(from, x.to-size); i < min(to, x.to); i++ {
			v := x.ring[(i-x.from)%size]
			if !math.IsNaN(v) && !yield(i, v) {
				return
			}
		}
	}
}
