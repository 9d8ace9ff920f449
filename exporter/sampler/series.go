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
	"github.com/windowstat/windowstat/exporter/internal/text"
)

// series holds the values of a series in the last seconds.
type series struct {
	key     string // the full name, and the names and values of the labels, each after a separator
	family  *family
	source  *source
	state   *familyState
	counter bool
	escape  int // additional bytes of the names on a page, if they are quoted or escaped
	values  ring

	second  int64   // last second that was gathered; never for a new series
	total   float64 // total of a counter at the end of second; NaN if unknown
	created int64   // created timestamp of a counter in Unix nanoseconds; 0 if absent
}

// separator separates the parts of a key. It does not occur in UTF-8.
const separator = "\xff"

// increase ends the name of an increase, which is a gauge. The end _total would show a counter to readers and to tools.
const increase = "_increase"

// gathered is the context of recording the gathering of one source for one second.
type gathered struct {
	source   *source
	second   int64
	complete bool  // the gathering had no error
	from, to int64 // start and end of the second for created timestamps, see [wallClock]
	now      int64 // created timestamps after this time are invalid

	family *dto.MetricFamily // family that is being recorded
	state  *familyState
	labels []*dto.LabelPair // labels of the metric that is being recorded
}

// record stores the families of a gathering. mu must be held.
func (s *Sampler) record(g *gathered, families []*dto.MetricFamily) {
	for _, f := range families {
		if name := f.GetName(); !validUTF8(name) || f.GetType() == dto.MetricType_GAUGE_HISTOGRAM {
			s.omitted += int64(len(f.Metric))
			continue
		}
		// The counters of a new family are of unknown age, because the family may have failed in the seconds before.
		g.family, g.state = f, g.source.families[f.GetName()]
		if g.state == nil {
			g.state = &familyState{kind: f.GetType(), lastComplete: never, forgot: g.source.forgot}
			g.source.families[f.GetName()] = g.state
		}
		if g.state.kind != f.GetType() { // a gauge of this name says nothing about the age of counters
			g.state.kind, g.state.forgot = f.GetType(), true
		}
		for _, m := range f.Metric {
			s.metric(g, m)
		}
		g.state.lastSeen = g.second
		if g.complete && len(f.Metric) > 0 {
			g.state.lastComplete = g.second
		}
	}
	g.source.forget(g.second)
}

// metric stores a metric. mu must be held.
func (s *Sampler) metric(g *gathered, m *dto.Metric) {
	list, ok := labels(m)
	g.labels = list
	switch {
	case !ok:
		s.omitted++
	case m.TimestampMs != nil:
		s.omit(g)
	case m.Counter != nil:
		s.count(g, m.Counter.GetValue(), m.Counter.CreatedTimestamp)
	case m.Gauge != nil:
		s.gauge(g, m.Gauge.GetValue())
	case m.Untyped != nil:
		s.gauge(g, m.Untyped.GetValue())
	case m.Histogram != nil:
		h := m.Histogram
		count := cmp.Or(h.GetSampleCountFloat(), float64(h.GetSampleCount()))
		s.observations(g, count, h.GetSampleSum(), h.CreatedTimestamp)
	case m.Summary != nil:
		s.observations(g, float64(m.Summary.GetSampleCount()), m.Summary.GetSampleSum(), m.Summary.CreatedTimestamp)
	}
}

// omit counts a metric as omitted. If the metric is a counter, it does not count as new when it is sampled later. mu
// must be held.
func (s *Sampler) omit(g *gathered) {
	s.omitted++
	g.state.forgot = true
}

// labels returns the labels of a metric, sorted and without empty ones. It returns false for labels that no server
// accepts. It does not check their names, see [validLabels].
func labels(m *dto.Metric) (all []*dto.LabelPair, ok bool) {
	sorted := true
	for i, l := range m.Label {
		if !utf8.ValidString(l.GetValue()) {
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

// validLabels reports whether servers accept the names of the labels. Names that begin with __ are reserved for
// servers.
func validLabels(all []*dto.LabelPair) bool {
	return !slices.ContainsFunc(all, func(l *dto.LabelPair) bool {
		return !validUTF8(l.GetName()) || strings.HasPrefix(l.GetName(), "__")
	})
}

// find returns the series of the gathered metric whose name has this suffix, and creates it if needed. The suffix of a
// gauge is empty. find returns nil if the series is omitted. mu must be held.
func (s *Sampler) find(g *gathered, suffix string) *series {
	name := g.family.GetName()
	s.key = append(append(append(s.key[:0], s.opts.Prefix...), name...), suffix...)
	full := len(s.key)
	for _, l := range g.labels {
		s.key = append(append(append(append(s.key, separator...), l.GetName()...), separator...), l.GetValue()...)
	}
	// The order of the cases matters. An existing series stays, even at the limit of series. A name that two sources
	// share belongs to the first source; otherwise its increases would be differences of two counters. A name that two
	// metrics share belongs to the first metric.
	x := s.series[string(s.key)]
	var f *family
	if x != nil {
		f = x.family
	} else {
		f = s.families[string(s.key[:full])]
	}
	switch {
	case f != nil && f.metric != name:
	case x == nil && !validLabels(g.labels):
		s.omitted++
		return nil
	case x == nil && len(s.series) >= s.opts.MaxSeries:
		if !s.full {
			s.full = true
			s.log.Log(slog.LevelWarn, "too many series; series beyond the sampler option MaxSeries are omitted",
				"MaxSeries", s.opts.MaxSeries, "left_out", name)
		}
	case x == nil:
		return s.open(g, string(s.key), full, suffix != "")
	case x.source != g.source:
	case x.second == g.second: // the gathering has it twice, and the right value is unknown
		x.total = math.NaN()
		if x.values.end > g.second {
			x.values.put(g.second, math.NaN(), s.history())
		}
	default:
		return x
	}
	s.omit(g)
	return nil
}

// open creates a series with this key, which begins with the full name of its family, name bytes long. mu must be held.
func (s *Sampler) open(g *gathered, key string, name int, counter bool) *series {
	f := s.families[key[:name]]
	if f == nil {
		// The family gets the help of the first source and the first metric with this name. Servers keep only one help
		// text for a name, too.
		help := "At the end of this second: "
		if counter {
			help = "Added in this second: "
		}
		help += strings.ToValidUTF8(g.family.GetHelp(), "\uFFFD")
		f = &family{
			Family: table.Family{Name: key[:name], Type: table.Gauge, Help: help},
			metric: g.family.GetName(),
		}
		s.families[f.Name] = f
	}
	x := &series{key: key, family: f, source: g.source, state: g.state, counter: counter, second: never}
	x.escape = escapeBytes(f.Name)
	for _, l := range g.labels {
		x.escape += escapeBytes(l.GetName())
	}
	f.series++
	g.state.series++
	s.series[key], s.order, s.sorted = x, append(s.order, x), false
	return x
}

// escapeBytes returns how many bytes more than a name its longest form on a page has.
func escapeBytes(name string) int {
	if validName(name) {
		return 0
	}
	return max(len(text.EscapeLabel(name))-len(name), len(`,""`)+strings.Count(name, `"`)+strings.Count(name, `\`))
}

// gauge stores the value of a gauge. mu must be held.
func (s *Sampler) gauge(g *gathered, v float64) {
	if x := s.find(g, ""); x != nil {
		x.values.put(g.second, v, s.history())
		x.second = g.second
	}
}

// count stores the increase of a counter. mu must be held.
func (s *Sampler) count(g *gathered, total float64, at *timestamppb.Timestamp) {
	if x := s.find(g, increase); x != nil {
		s.add(x, g.second, total, x.since(g, total, created(at)))
	}
}

// observations stores the increases of the count and of the sum of a histogram or a summary. The start of the sum is
// known if the start of the count is known, even if the sum decreases. mu must be held.
func (s *Sampler) observations(g *gathered, count, sum float64, at *timestamppb.Timestamp) {
	// The count decreases only if the process that counts was restarted. The sum may also decrease because of negative
	// observations, so it cannot show a restart.
	from := unattributed
	if x := s.find(g, "_count"+increase); x != nil {
		from = x.since(g, count, created(at))
		s.add(x, g.second, count, from)
	}
	if x := s.find(g, "_sum"+increase); x != nil {
		if from == previous && x.second != g.second-1 {
			from = unattributed
		}
		s.add(x, g.second, sum, from)
	}
}

// created returns a created timestamp in Unix nanoseconds, or 0 if it is absent.
func created(at *timestamppb.Timestamp) int64 {
	if !at.IsValid() {
		return 0
	}
	return at.AsTime().UnixNano()
}

// start says how the total of a counter at the start of a second is known.
type start int

const (
	unattributed start = iota // the total is unknown
	previous                  // it is the total of the previous second
	zero                      // the counter did not exist
	deferred                  // the counter was created after the end of the second
)

// since returns how the total of a counter at the start of a second is known, and stores the created timestamp. total
// and created are the values of the gathering at the end of the second. See [Sampler].
func (x *series) since(g *gathered, total float64, created int64) start {
	// The increase of a second is known in two cases: the total at its start is known, or the counter was created
	// within the second, with zero. A created timestamp shows the second case. Without a timestamp, the second case
	// holds if the previous second was gathered completely and did not have the counter.
	isNew := x.second == never
	same := x.created == created && !isNew
	x.created = created
	switch {
	case same && x.second == g.second-1:
		if total >= x.total {
			return previous
		}
	case created != 0:
		switch {
		case same || created > g.now:
		case created >= g.to:
			return deferred
		case created >= g.from:
			return zero
		}
	case isNew && g.state.lastComplete == g.second-1 && !g.state.forgot:
		return zero
	}
	return unattributed
}

// add stores the increase of a counter in a second. total is the total at the end of the second, and from says how the
// total at its start is known. mu must be held.
func (s *Sampler) add(x *series, second int64, total float64, from start) {
	v := math.NaN()
	switch from {
	case previous:
		v = total - x.total
	case zero:
		v = total
	case deferred:
		total = 0
	}
	switch {
	case !math.IsNaN(v) && !math.IsInf(v, 0):
		x.values.put(second, v, s.history())
	// The total includes the increase during missed seconds, but no second does. Count it, because the sum of the
	// seconds then differs from the total.
	case from != deferred && x.source.last == second-1 && total != x.total:
		s.unattributed++
	}
	x.total, x.second = total, second
}

// history returns the number of seconds that are kept.
func (s *Sampler) history() int { return int(s.stats.History().Seconds()) }
