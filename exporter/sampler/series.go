package sampler

import (
	"cmp"
	"iter"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/windowstat/windowstat/exporter/internal/table"
)

// sampled is a series with its values of the last seconds.
type sampled struct {
	family        *table.Family
	names, values []string
	key           string
	counter       bool

	ring     []float64 // by index modulo history; NaN where there is none
	from     int64     // first second in the ring
	to       int64     // the second after the last one in the ring
	total    float64   // last total of a counter
	gathered int64     // second of that total
}

// record stores the values that were gathered at the end of a second. It reports whether that was all that can be sampled:
// nothing was left out that may be sampled later. Holds mu.
func (s *Sampler) record(second int64, families []*dto.MetricFamily) (complete bool) {
	s.left = 0
	var invalid int64
	for _, f := range families {
		for _, m := range f.Metric {
			if !s.valid(f, m) {
				invalid++
				continue
			}
			x := gathered{f, m, second, s.previous == second-1 && !created(m).Before(s.mark)}
			switch {
			case m.Counter != nil:
				s.add(x, f.GetName(), m.Counter.GetValue(), nil)
			case m.Gauge != nil:
				s.set(x, m.Gauge.GetValue())
			case m.Untyped != nil:
				s.set(x, m.Untyped.GetValue())
			case m.Histogram != nil:
				reset := s.add(x, f.GetName()+"_count", count(m.Histogram), nil)
				s.add(x, f.GetName()+"_sum", m.Histogram.GetSampleSum(), &reset)
			case m.Summary != nil:
				reset := s.add(x, f.GetName()+"_count", float64(m.Summary.GetSampleCount()), nil)
				s.add(x, f.GetName()+"_sum", m.Summary.GetSampleSum(), &reset)
			}
		}
	}
	s.expire(second)
	complete = s.left == 0
	s.left += invalid
	return complete
}

// gathered is one metric of a gathering.
type gathered struct {
	family *dto.MetricFamily
	metric *dto.Metric
	second int64
	isNew  bool // it was created after the gathering of the second before had begun
}

// created returns the created timestamp of a metric; without one it is long ago.
func created(m *dto.Metric) time.Time {
	switch {
	case m.Counter != nil:
		return m.Counter.GetCreatedTimestamp().AsTime()
	case m.Histogram != nil:
		return m.Histogram.GetCreatedTimestamp().AsTime()
	}
	return m.GetSummary().GetCreatedTimestamp().AsTime()
}

// count returns the number of observations of a histogram.
func count(h *dto.Histogram) float64 {
	return cmp.Or(h.GetSampleCountFloat(), float64(h.GetSampleCount()))
}

var (
	validMetric = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	validName   = validMetric.MatchString
)

// valid reports whether every server accepts the names of a metric and its labels.
func (s *Sampler) valid(f *dto.MetricFamily, m *dto.Metric) bool {
	if !validName(f.GetName()) {
		return false
	}
	return !slices.ContainsFunc(m.Label, func(l *dto.LabelPair) bool { return !validName(l.GetName()) })
}

// find returns the series of a metric, and makes it if needed. It is nil if there are too many series, or the series was
// another kind of metric, or a Gatherer gives it twice. Holds mu.
func (s *Sampler) find(g gathered, name string, counter bool) *sampled {
	s.key = append(append(s.key[:0], s.opts.Prefix...), name...)
	full := len(s.key)
	for _, l := range g.metric.Label {
		s.key = append(append(append(append(s.key, 0), l.GetName()...), 0), l.GetValue()...)
	}
	x := s.series[string(s.key)]
	if x == nil {
		x = s.open(string(s.key[:full]), string(s.key), g.family, g.metric, counter)
		g.isNew = g.isNew || s.complete && s.previous == g.second-1
	}
	if x == nil || x.counter != counter || x.to > g.second || x.gathered == g.second {
		s.left++
		return nil
	}
	if g.isNew && x.gathered < g.second-1 {
		x.total, x.gathered = 0, g.second-1
	}
	return x
}

// set stores the value of a gauge.
func (s *Sampler) set(g gathered, v float64) {
	if x := s.find(g, g.family.GetName(), false); x != nil {
		s.put(x, g.second, v)
	}
}

// add stores the increase of a counter, and reports whether the counter was reset: its total decreased, or reset says so.
func (s *Sampler) add(g gathered, name string, total float64, reset *bool) bool {
	x := s.find(g, name, true)
	if x == nil {
		return false
	}
	isReset := total < x.total
	if reset != nil {
		isReset = *reset
	}
	if isReset {
		x.total = 0
	}
	if x.gathered == g.second-1 {
		s.put(x, g.second, total-x.total)
	}
	x.total, x.gathered = total, g.second
	return isReset
}

// put stores the value of a second, except of the first gathering, whose second was sealed without it. Holds mu.
func (s *Sampler) put(x *sampled, second int64, v float64) {
	if s.previous != never {
		x.put(second, v, int(s.history()))
	}
}

// open makes a series unless there are too many. Holds mu.
func (s *Sampler) open(name, key string, f *dto.MetricFamily, m *dto.Metric, counter bool) *sampled {
	if len(s.series) >= s.opts.MaxSeries {
		return nil
	}
	family := s.families[name]
	if family == nil {
		help := "At the end of this second: "
		if counter {
			help = "Added in this second: "
		}
		help += strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(f.GetHelp())
		family = &table.Family{Name: name, Type: table.Gauge, Help: help}
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

// expire removes the series without a value in the history. Holds mu.
func (s *Sampler) expire(second int64) {
	history := s.history()
	s.order = slices.DeleteFunc(s.order, func(x *sampled) bool {
		if x.counter && x.gathered >= second-history || x.to >= second-history {
			return false
		}
		delete(s.series, x.key)
		return true
	})
}

// history returns how many seconds are kept.
func (s *Sampler) history() int64 { return int64(s.stats.History().Seconds()) }

// put stores the value of a second, which must not be before the last one.
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

// seconds iterates over the values in [from, to).
func (x *sampled) seconds(from, to int64) iter.Seq2[int64, float64] {
	return func(yield func(int64, float64) bool) {
		size := int64(len(x.ring)) // while the ring grows, its oldest value is at 0
		for i := max(from, x.to-size); i < min(to, x.to); i++ {
			v := x.ring[(i-x.from)%size]
			if !math.IsNaN(v) && !yield(i, v) {
				return
			}
		}
	}
}
