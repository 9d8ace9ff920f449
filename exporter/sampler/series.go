package sampler

import (
	"cmp"
	"log/slog"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/windowstat/windowstat/exporter/internal/table"
)

// series is a series with its values of the last seconds.
type series struct {
	key     string // its name, and the names and values of its labels, each after a separator
	family  *family
	source  *source
	known   *known
	counter bool
	values  ring

	second  int64   // the last second that was gathered; never for a new one
	total   float64 // of a counter, at the end of it; NaN if it is unknown
	created int64   // of a counter, in Unix nanoseconds; 0 if it does not say
}

// separator is between the parts of a key. It is in no UTF-8.
const separator = "\xff"

// gathered is what a source has of a second.
type gathered struct {
	source   *source
	second   int64
	complete bool  // it failed in no part
	from, to int64 // when the second began and ended, by created timestamps, see [wallClock]
	now      int64 // no created timestamp is after it

	family *dto.MetricFamily // that is being recorded
	known  *known
	labels []*dto.LabelPair // of its metric
}

// record stores what was gathered. Holds mu.
func (s *Sampler) record(g *gathered, families []*dto.MetricFamily) {
	for _, f := range families {
		if name := f.GetName(); !validName(name) || f.GetType() == dto.MetricType_GAUGE_HISTOGRAM {
			s.left += int64(len(f.Metric))
			continue
		}
		// The counters of a family that is seen for the first time are of unknown age: it may have failed in the seconds before.
		g.family, g.known = f, g.source.families[f.GetName()]
		if g.known == nil {
			g.known = &known{whole: never, forgot: g.source.forgot}
			g.source.families[f.GetName()] = g.known
		}
		for _, m := range f.Metric {
			s.metric(g, m)
		}
		g.known.present = g.second
		if g.complete && len(f.Metric) > 0 {
			g.known.whole = g.second
		}
	}
	g.source.forget(g.second)
}

// metric stores a metric. Holds mu.
func (s *Sampler) metric(g *gathered, m *dto.Metric) {
	list, ok := labels(m)
	g.labels = list
	switch {
	case !ok:
		s.left++
	case m.TimestampMs != nil:
		s.leave(g)
	case m.Counter != nil:
		s.count(g, m.Counter.GetValue(), m.Counter.CreatedTimestamp)
	case m.Gauge != nil:
		s.gauge(g, m.Gauge.GetValue())
	case m.Untyped != nil:
		s.gauge(g, m.Untyped.GetValue())
	case m.Histogram != nil:
		h := m.Histogram
		s.observations(g, cmp.Or(h.GetSampleCountFloat(), float64(h.GetSampleCount())), h.GetSampleSum(), h.CreatedTimestamp)
	case m.Summary != nil:
		s.observations(g, float64(m.Summary.GetSampleCount()), m.Summary.GetSampleSum(), m.Summary.CreatedTimestamp)
	}
}

// leave leaves out a metric. If it is a counter that is taken later, it is not a new one. Holds mu.
func (s *Sampler) leave(g *gathered) {
	s.left++
	g.known.forgot = true
}

// labels returns the labels of a metric, sorted and without those that are empty. It reports false for labels that not every
// server takes, but does not look at their names, see [validLabels].
func labels(m *dto.Metric) (all []*dto.LabelPair, ok bool) {
	sorted := true
	for i, l := range m.Label {
		if !utf8.ValidString(l.GetName()) || !utf8.ValidString(l.GetValue()) {
			return nil, false
		}
		sorted = sorted && l.GetValue() != "" && (i == 0 || m.Label[i-1].GetName() < l.GetName())
	}
	if sorted {
		return m.Label, true
	}
	all = slices.DeleteFunc(slices.Clone(m.Label), func(l *dto.LabelPair) bool { return l.GetValue() == "" })
	slices.SortFunc(all, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
	for i := 1; i < len(all); i++ {
		if all[i-1].GetName() == all[i].GetName() {
			return nil, false
		}
	}
	return all, true
}

// validLabels reports whether all servers take the names of the labels. Those that begin with __ are the servers' own.
func validLabels(all []*dto.LabelPair) bool {
	return !slices.ContainsFunc(all, func(l *dto.LabelPair) bool {
		return !validName(l.GetName()) || strings.HasPrefix(l.GetName(), "__")
	})
}

// find returns the series of a metric with this name, and makes it if needed. It is nil if it is left out. Holds mu.
func (s *Sampler) find(g *gathered, name, suffix string, counter bool) *series {
	s.key = append(append(append(s.key[:0], s.opts.Prefix...), name...), suffix...)
	full := len(s.key)
	for _, l := range g.labels {
		s.key = append(append(append(append(s.key, separator...), l.GetName()...), separator...), l.GetValue()...)
	}
	// The order of the cases matters: a series that exists stays, whatever the limits are, and a name that two sources share belongs to the
	// first of them, or its increases would be differences of two counters.
	x := s.series[string(s.key)]
	switch {
	case x == nil && !validLabels(g.labels):
		s.left++
		return nil
	case x == nil && len(s.series) >= s.opts.MaxSeries:
		if !s.full {
			s.full = true
			s.log.Log(slog.LevelWarn, "too many series; those beyond MaxSeries of the sampler's options are left out", "MaxSeries", s.opts.MaxSeries, "left_out", name)
		}
	case x == nil:
		return s.open(g, string(s.key), full, counter)
	case x.source != g.source, x.counter != counter:
	case x.second == g.second: // it comes twice, and nobody knows which one is right
		x.total = math.NaN()
		if x.values.end > g.second {
			x.values.put(g.second, math.NaN(), s.history())
		}
	default:
		return x
	}
	s.leave(g)
	return nil
}

// open makes a series with this key, which begins with the name of its family. Holds mu.
func (s *Sampler) open(g *gathered, key string, name int, counter bool) *series {
	f := s.families[key[:name]]
	if f == nil {
		// The help is that of the first source and of the first metric with the name; servers keep one for a name, too.
		help := "At the end of this second: "
		if counter {
			help = "Added in this second: "
		}
		f = &family{Family: table.Family{Name: key[:name], Type: table.Gauge, Help: help + strings.ToValidUTF8(g.family.GetHelp(), "\uFFFD")}}
		s.families[f.Name] = f
	}
	x := &series{key: key, family: f, source: g.source, known: g.known, counter: counter, second: never}
	f.series++
	g.known.series++
	s.series[key], s.order, s.sorted = x, append(s.order, x), false
	return x
}

// gauge stores the value of a gauge. Holds mu.
func (s *Sampler) gauge(g *gathered, v float64) {
	if x := s.find(g, g.family.GetName(), "", false); x != nil {
		x.values.put(g.second, v, s.history())
		x.second = g.second
	}
}

// count stores the increase of a counter. Holds mu.
func (s *Sampler) count(g *gathered, total float64, at *timestamppb.Timestamp) {
	if x := s.find(g, g.family.GetName(), "", true); x != nil {
		s.add(x, g.second, total, x.since(g, total, created(at)))
	}
}

// observations stores the increases of the count and of the sum of a histogram or a summary. What is known of the count is known of
// the sum, which may go down. Holds mu.
func (s *Sampler) observations(g *gathered, count, sum float64, at *timestamppb.Timestamp) {
	// The count never goes down unless the process that counts was restarted. The sum may, with negative observations, so it cannot tell.
	from := unplaced
	if x := s.find(g, g.family.GetName(), "_count", true); x != nil {
		from = x.since(g, count, created(at))
		s.add(x, g.second, count, from)
	}
	if x := s.find(g, g.family.GetName(), "_sum", true); x != nil {
		if from == before && x.second != g.second-1 {
			from = unplaced
		}
		s.add(x, g.second, sum, from)
	}
}

// created returns a created timestamp in Unix nanoseconds, 0 if there is none.
func created(at *timestamppb.Timestamp) int64 {
	if !at.IsValid() {
		return 0
	}
	return at.AsTime().UnixNano()
}

// start is what is known of a counter at the start of a second.
type start int

const (
	unplaced start = iota // nothing
	before                // its total of the second before
	zero                  // it did not exist
	later                 // it was created after the second, too
)

// since returns what is known of a counter at the start of a second: when it has this total and was created then. See [Sampler].
func (x *series) since(g *gathered, total float64, created int64) start {
	// The increase of a second is known in two cases: the total at its start is known, or the counter was created within it, with zero. A
	// created timestamp tells the latter; without one it is so if the second before was gathered as a whole and did not have the counter.
	isNew := x.second == never
	same := x.created == created && !isNew
	x.created = created
	switch {
	case same && x.second == g.second-1:
		if total >= x.total {
			return before
		}
	case created != 0:
		switch {
		case same || created > g.now:
		case created >= g.to:
			return later
		case created >= g.from:
			return zero
		}
	case isNew && g.known.whole == g.second-1 && !g.known.forgot:
		return zero
	}
	return unplaced
}

// add stores the increase of a counter since the start of a second, at whose end it has this total. Holds mu.
func (s *Sampler) add(x *series, second int64, total float64, from start) {
	v := math.NaN()
	switch from {
	case before:
		v = total - x.total
	case zero:
		v = total
	case later:
		total = 0
	}
	switch {
	case !math.IsNaN(v) && !math.IsInf(v, 0):
		x.values.put(second, v, s.history())
	// What a counter gained in seconds that were missed is in its total and in no second. It is counted, so that nobody takes the sum of
	// the seconds for the total.
	case from != later && x.source.last == second-1 && total != x.total:
		s.unplaced++
	}
	x.total, x.second = total, second
}

// history returns how many seconds are kept.
func (s *Sampler) history() int { return int(s.stats.History().Seconds()) }
