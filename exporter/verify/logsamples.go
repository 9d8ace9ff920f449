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

// sample is a sample of the log. The log has whole seconds only.
type sample struct {
	unix  int64
	value float64
}

// series is a series of the log, of the database, or of both.
type series struct {
	key
	// The family and the labels that a Sink needs. Labels of the instance are not included, and family is nil if only
	// the database has the series.
	family        *table.Family
	names, values []string

	samples []sample // of a chunk of the log, ascending
	points  []point  // of the database; set only while the chunk is compared

	// lastCompared is the second of the last compared sample. If a range of a finding ends at this second, the next
	// sample extends the range, even if there are seconds between the two samples: the log does not have those seconds.
	lastCompared int64
	found        *Finding // nil while the series is equal in both
}

// between returns the samples from one second to another, both included.
func (s *series) between(from, to int64) []sample {
	at := func(x sample, unix int64) int { return cmp.Compare(x.unix, unix) }
	first, _ := slices.BinarySearchFunc(s.samples, from, at)
	end, _ := slices.BinarySearchFunc(s.samples, to+1, at)
	return s.samples[first:end]
}

// finding returns the Finding of the series, and creates it for the first sample that is missing, different or extra.
func (s *series) finding() *Finding {
	if s.found == nil {
		s.found = &Finding{Resource: s.resource, Metric: s.metric}
	}
	return s.found
}

// logSamples is a Sink for [Gap.emit] that holds the samples of one chunk of the log, by series. A series remains when
// its samples are removed, because its Finding covers all chunks. Samples of the run metric are held separately,
// because they are written but not compared.
type logSamples struct {
	series  []*series
	byKey   map[key]*series
	active  map[string]map[int64]bool // by resource: the seconds with events
	runs    series
	current *series // that Value adds to
}

// newLogSamples returns an empty logSamples. RunMetric is the name of the run metric.
func newLogSamples(runMetric string) *logSamples {
	return &logSamples{
		byKey:  map[key]*series{},
		active: map[string]map[int64]bool{},
		runs:   series{key: key{metric: runMetric}},
	}
}

// get returns the series with a key, and adds it if it is new.
func (l *logSamples) get(k key) *series {
	s := l.byKey[k]
	if s == nil {
		s = &series{key: k}
		l.byKey[k] = s
		l.series = append(l.series, s)
	}
	return s
}

var _ seconds.Sink = (*logSamples)(nil)

// Series implements seconds.Sink. The first label, if any, is the resource.
func (l *logSamples) Series(f *table.Family, names, values []string) {
	switch {
	case f.Name == l.runs.metric:
		l.current = &l.runs
	case len(values) == 0:
		l.current = l.get(key{metric: f.Name})
	default:
		l.current = l.get(key{values[0], f.Name})
	}
	if l.current.family == nil {
		l.current.family, l.current.names, l.current.values = f, slices.Clone(names), slices.Clone(values)
	}
}

// Value implements seconds.Sink.
func (l *logSamples) Value(unix int64, v float64) {
	l.current.samples = append(l.current.samples, sample{unix, v})
	if v == 0 || l.current == &l.runs { // the run is not an event
		return
	}
	active := l.active[l.current.resource]
	if active == nil {
		active = map[int64]bool{}
		l.active[l.current.resource] = active
	}
	active[unix] = true
}

// Histogram implements seconds.Sink. The log has no histograms.
func (l *logSamples) Histogram(int64, *node.Histogram) {}

// reset removes the samples and keeps their memory for the next chunk.
func (l *logSamples) reset() {
	for _, s := range append(l.series, &l.runs) {
		s.samples = s.samples[:0]
	}
	for _, active := range l.active {
		clear(active)
	}
}
