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

// logged is a series of the log.
type logged struct {
	key
	family        *table.Family
	names, values []string // of its own labels
	samples       []sample
	compared      int64 // the second of the last sample that was compared
}

// between returns the samples of the seconds from and to, and of those between.
func (s *logged) between(from, to int64) []sample {
	at := func(x sample, unix int64) int { return cmp.Compare(x.unix, unix) }
	first, _ := slices.BinarySearchFunc(s.samples, from, at)
	end, _ := slices.BinarySearchFunc(s.samples, to+1, at)
	return s.samples[first:end]
}

// expected is a Sink that keeps a part of the samples of the log. An idle second is one in which all metrics are zero.
type expected struct {
	series []*logged
	byKey  map[key]*logged
	active map[string]map[int64]bool // by resource
	last   *logged
	runs   logged // which is compared with nothing
}

// newExpected makes one for a log with runs of this name.
func newExpected(runs string) *expected {
	return &expected{byKey: map[key]*logged{}, active: map[string]map[int64]bool{}, runs: logged{key: key{metric: runs}}}
}

var _ seconds.Sink = (*expected)(nil)

// Series implements seconds.Sink.
func (e *expected) Series(f *table.Family, names, values []string) {
	if f.Name == e.runs.metric {
		e.runs.family, e.last = f, &e.runs
		return
	}
	k := key{metric: f.Name}
	if len(values) > 0 {
		k.resource = values[0]
	}
	if e.last = e.byKey[k]; e.last == nil {
		e.last = &logged{key: k, family: f, names: append([]string(nil), names...), values: append([]string(nil), values...)}
		e.byKey[k] = e.last
		e.series = append(e.series, e.last)
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
