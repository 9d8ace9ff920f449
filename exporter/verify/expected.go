package verify

import (
	"cmp"
	"slices"

	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// key identifies a series of the instance.
type key struct{ resource, metric string }

// sample is a sample that the log has.
type sample struct {
	unix  int64
	value float64
}

// series is a series of the log, of the database, or of both.
type series struct {
	key
	family        *table.Family // of the log; nil for one that only the database has
	names, values []string      // of its own labels
	samples       []sample      // of a part of the log, in order
	points        []point       // of the database, while they are compared
	compared      int64         // the second of the last sample that was compared: a range that ends with it goes on
	finding       *Finding      // nil while nothing is wrong
}

// between returns the samples of the seconds from and to, and of those between.
func (s *series) between(from, to int64) []sample {
	at := func(x sample, unix int64) int { return cmp.Compare(x.unix, unix) }
	first, _ := slices.BinarySearchFunc(s.samples, from, at)
	end, _ := slices.BinarySearchFunc(s.samples, to+1, at)
	return s.samples[first:end]
}

// wrong returns the finding, for what is wrong with the series.
func (s *series) wrong() *Finding {
	if s.finding == nil {
		s.finding = &Finding{Resource: s.resource, Metric: s.metric}
	}
	return s.finding
}

// expected is a Sink that keeps a part of the samples of the log, and has a place beside them for those of the database. An idle second is
// one in which all metrics are zero.
type expected struct {
	series []*series
	byKey  map[key]*series
	active map[string]map[int64]bool // by resource
	last   *series
	runs   series // which is compared with nothing
}

// newExpected makes one for a log with runs of this name.
func newExpected(runs string) *expected {
	return &expected{byKey: map[key]*series{}, active: map[string]map[int64]bool{}, runs: series{key: key{metric: runs}}}
}

// of returns the series with a key.
func (e *expected) of(k key) *series {
	s := e.byKey[k]
	if s == nil {
		s = &series{key: k}
		e.byKey[k] = s
		e.series = append(e.series, s)
	}
	return s
}

var _ seconds.Sink = (*expected)(nil)

// Series implements seconds.Sink.
func (e *expected) Series(f *table.Family, names, values []string) {
	switch {
	case f.Name == e.runs.metric:
		e.last = &e.runs
	case len(values) == 0:
		e.last = e.of(key{metric: f.Name})
	default:
		e.last = e.of(key{values[0], f.Name})
	}
	if e.last.family == nil {
		e.last.family, e.last.names, e.last.values = f, slices.Clone(names), slices.Clone(values)
	}
}

// Value implements seconds.Sink.
func (e *expected) Value(unix int64, v float64) {
	e.last.samples = append(e.last.samples, sample{unix, v})
	if v != 0 && e.last != &e.runs {
		of := e.active[e.last.resource]
		if of == nil {
			of = map[int64]bool{}
			e.active[e.last.resource] = of
		}
		of[unix] = true
	}
}

// Histogram implements seconds.Sink. The log has none.
func (e *expected) Histogram(int64, *node.Histogram) {}

// reset forgets the samples, and keeps their memory for those of the next part.
func (e *expected) reset() {
	for _, s := range append(e.series, &e.runs) {
		s.samples = s.samples[:0]
	}
	for _, of := range e.active {
		clear(of)
	}
}
