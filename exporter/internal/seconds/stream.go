// Package seconds provides the streams of sealed seconds that the per-second endpoint, pushes and verify send. A stream
// contains samples of each second of each resource. The samples come from the Collector's history, and for earlier
// processes from the metric log.
//
// # The line
//
// A [Line] is the sequence of the sealed seconds of a [Source], by Unix time. Package delivery records how far each
// consumer has got on it: the cursor of a scraper, or a push.
//
// # From a second to samples
//
// A consumer requests the seconds from its position on from a [Stream]. The Stream passes their samples to a [Sink],
// series by series. A Sink is a page, a request or a comparison. [Resources] is the Stream of the resources of a
// Collector. It reads the records of each resource from the history, and applies the rows of package table to each
// record. Seconds of earlier processes come from the metric log through a [Filler], which adds the idle seconds that
// have no row in the log. All exporters share Resources and Filler, so a second has the same samples in each of them.
//
// A resource is idle after a minute without activity. Its pass metric continues with zeros; all other metrics pause
// until the next call. Idleness depends only on earlier seconds, so all consumers omit the same samples at any time.
//
// # Bounds
//
// A [Selection] narrows the samples. [Stream].Size reports the size of one second of a Selection. A [Limit] ends a
// response or a request after a whole second, before it becomes too large. Unsent seconds stay in the history, so
// memory does not grow with the lag of a consumer.
package seconds

import (
	"slices"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// Stream is a source of sealed seconds, such as the resources of a Collector (see [Resources]) or a sampler that takes
// values every second. Seconds are Unix times, see [Line]. A Stream is safe for concurrent use.
type Stream interface {
	// Knows reports whether the stream has a metric with this full name.
	Knows(metric string) bool
	// Sealed returns the first second that is not sealed yet. It is at most open, the currently open second, and
	// smaller if the stream is not ready. Sealed seconds never change.
	Sealed(open int64) int64
	// Size returns the largest size of a sealed second of the selection, for seconds at or after from. A cumulative
	// histogram that resumes after idle seconds has an extra sample one second earlier. Several seconds together may
	// therefore be as large as one additional second.
	Size(s *Selection, from int64) Size
	// Emit writes the sealed seconds in [from, to) to the sink, up to the limit. It returns the first second that it
	// did not emit. That is to, unless the limit is smaller.
	Emit(s *Selection, from, to int64, limit Limit, sink Sink) (reached int64)
}

// Limit bounds the output of one call of [Stream].Emit. At least one second is always emitted.
type Limit struct {
	// Seconds is the maximum number of seconds. Seconds with nothing to emit do not count.
	Seconds int64
	// Size applies to seconds from the log, which [Stream].Size does not include.
	Size
}

// Size is the size of a set of samples.
type Size struct {
	Samples int
	// Bytes is the approximate length as text.
	Bytes int
}

// Fit returns how many times o fits into s. For an empty o the result is a very large number.
func (s Size) Fit(o Size) int64 {
	return int64(min(s.Samples/max(o.Samples, 1), s.Bytes/max(o.Bytes, 1)))
}

// Add returns the sum of s and o.
func (s Size) Add(o Size) Size { return Size{s.Samples + o.Samples, s.Bytes + o.Bytes} }

// Selection selects samples. The zero value selects everything except the histogram.
type Selection struct {
	// Metrics are full names of metrics. If empty, all metrics are selected.
	Metrics []string
	// Resources are names of resources. If empty, all resources are selected. If not empty, streams without resources
	// have no samples.
	Resources []string
	// Histogram adds a histogram of response times.
	Histogram Temporality
	// Sums adds the sum of each selected metric that adds up. The sum is a counter whose name ends in _total.
	Sums Temporality
}

// Has reports whether a metric is selected.
func (s *Selection) Has(metric string) bool {
	return len(s.Metrics) == 0 || slices.Contains(s.Metrics, metric)
}

// wants reports whether a resource is selected.
func (s *Selection) wants(resource string) bool {
	return len(s.Resources) == 0 || slices.Contains(s.Resources, resource)
}

// total reports whether the total of inbound traffic is selected.
func (s *Selection) total() bool { return len(s.Resources) == 0 }

// Temporality says which time a sample of a histogram or a sum covers, see [table.Histograms].
type Temporality int

// The temporalities. A cumulative sample covers the time from the start of the series to the time of the sample, which
// is the end of a second. A single sample covers the second that has its time. Seconds from the log have no cumulative
// samples.
const (
	None Temporality = iota
	Cumulative
	Single
)

// Sink receives samples of seconds. They arrive series by series, in ascending order in each series. The series of a
// family arrive in any order, each of them once.
type Sink interface {
	// Series starts a series. The labels are sorted by name. The slices are valid only during the call.
	Series(f *table.Family, names, values []string)
	// Value adds a sample at a Unix time to the series.
	Value(unix int64, v float64)
	// Histogram adds a sample to a histogram series. h is valid only during the call.
	Histogram(unix int64, h *node.Histogram)
}

// Starter is implemented by a Sink that needs the start time of cumulative series. Start follows the call of Series.
type Starter interface{ Start(unix int64) }

// Exemplars is implemented by a Sink that accepts exemplars of native histograms. Exemplars follows the last sample of
// a series with the exemplars of its seconds, if there are any. The Sink may sort the slice, and must not keep it.
type Exemplars interface {
	Exemplars(list []collector.Exemplar)
}
