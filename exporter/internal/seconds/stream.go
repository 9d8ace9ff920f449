// Package seconds has the streams of sealed seconds that the per-second endpoint, pushes and verify send: samples of each
// second of each resource, from the Collector's history, and from the metric log for earlier processes.
//
// # The line and positions on it
//
// A [Line] is the sealed seconds of a Collector by their Unix times. A [Position] is how far one consumer of it is: the cursor of a
// scraper, or a push. A consumer saves its position with the end of what it is about to send, sends, and settles the seconds when they
// are received, refused or given up. So a process that is killed in between leaves a position that says which seconds are in doubt, and
// its successor decides whether to send them again.
//
// # From a second to samples
//
// A consumer asks a [Stream] for the seconds from its position on, and the Stream gives their samples to a [Sink], series by series: a
// page, a request, or a comparison. [Resources] is the Stream of what a Collector counts. It reads the records of each resource from the
// history, and walks the rows of package table for each. Seconds that an earlier process counted come from the metric log through a
// [Filler], which adds the idle seconds that have no row there. All ways out share these two, so a second has the same samples on each.
//
// A resource that has been idle for a minute is still: only its passes are sent, as zeros, until something happens again. Which seconds
// are still follows from the seconds before them and from nothing else, so every consumer leaves out the same samples, at any time.
//
// # Bounds
//
// A [Selection] narrows what is sent. [Stream].Size tells what one second of it takes, and a [Limit] ends a response or a request with a
// whole second before it is too large. What is still to be sent stays in the history, so memory does not grow with the lag of a consumer.
package seconds

import (
	"slices"

	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// Stream is a source of sealed seconds: the resources of a Collector, see [Resources], or something else that is sampled every
// second. Seconds are Unix times, see [Line]. A Stream is safe for concurrent use.
type Stream interface {
	// Knows reports whether the stream has a metric with this full name.
	Knows(metric string) bool
	// Sealed returns the second before which all are sealed, while open is the open one: open, or less if the stream is not ready.
	// Sealed seconds never change.
	Sealed(open int64) int64
	// Size returns the largest size of a sealed second of the selection from the second from on. With the cumulative histogram,
	// which begins again a second earlier, several seconds together may be as large as one more.
	Size(s *Selection, from int64) Size
	// Emit gives the sink the sealed seconds in [from, to), as many as the limit allows. It returns the second before which it
	// stopped, which is to unless the limit is smaller.
	Emit(s *Selection, from, to int64, limit Limit, sink Sink) (reached int64)
}

// Limit bounds what is emitted in one call; at least one second is.
type Limit struct {
	// Seconds counts only seconds that have something to emit.
	Seconds int64
	// Size limits seconds from the log, which [Stream].Size does not include.
	Size
}

// Size is the size of some samples.
type Size struct {
	Samples int
	// Bytes is the approximate length as text.
	Bytes int
}

// Fit returns how many times o fits into s; a very large number for an empty o.
func (s Size) Fit(o Size) int64 {
	return int64(min(s.Samples/max(o.Samples, 1), s.Bytes/max(o.Bytes, 1)))
}

// Add returns the sum.
func (s Size) Add(o Size) Size { return Size{s.Samples + o.Samples, s.Bytes + o.Bytes} }

// Selection selects samples. The zero value selects everything but the histogram.
type Selection struct {
	// Metrics are full names; all if empty.
	Metrics []string
	// Resources are names of resources; all if empty. Otherwise streams without resources have no samples.
	Resources []string
	// Histogram adds a histogram of response times.
	Histogram Temporality
	// Sums adds, for each selected metric that adds up, its sum: with the name with _total, and the type of a counter.
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

// Temporality is what the samples of a histogram or a sum are about, see [table.Histograms].
type Temporality int

// The temporalities. A cumulative sample is about all that happened since the series began up to its time, which is the end of a second;
// a single one about the second that has its time. Seconds from the log have no cumulative samples.
const (
	None Temporality = iota
	Cumulative
	Single
)

// Sink receives samples of seconds: series by series, ascending in each series. Series of a family come in any order, each
// once.
type Sink interface {
	// Series starts a series. The labels are sorted by name. The slices are valid during the call.
	Series(f *table.Family, names, values []string)
	// Value is a sample of the series, at a Unix time.
	Value(unix int64, v float64)
	// Histogram is a sample of a histogram series. h is valid during the call.
	Histogram(unix int64, h *node.Histogram)
}

// Starter is a Sink that wants to know since when a cumulative series counts. Start follows its Series.
type Starter interface{ Start(unix int64) }
