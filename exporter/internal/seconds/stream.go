// Package seconds has the streams of sealed seconds that the per-second page, the pushes and backfill send: samples of each
// second of each resource, from the Collector's history, and from the metric log for what earlier processes recorded.
package seconds

import (
	"github.com/windowstat/windowstat/exporter/internal/table"
	"github.com/windowstat/windowstat/node"
)

// Stream is where sealed seconds come from: the resources of a Collector, see [Resources], or something else that is
// known second by second. Seconds are those of the Collector's timeline. A Stream is safe for concurrent use.
type Stream interface {
	// Knows reports whether the stream has a metric with this full name.
	Knows(metric string) bool
	// Sealed is the second before which all are sealed, when the second open is open on the timeline: open, or the one
	// before it if the stream is not done with that. What was sealed once stays as it is.
	Sealed(open int64) int64
	// Size is how much a second of the selection is at most.
	Size(s *Selection) Size
	// Emit gives the sink the sealed seconds from from to before to, or the first of them if the limit does not allow more.
	// It returns the second before which it stopped, to if there was nothing to leave out.
	Emit(s *Selection, from, to int64, limit Limit, sink Sink) (reached int64)
}

// Limit is how much is emitted at a time; but it is one second at least.
type Limit struct {
	// Seconds counts only seconds that have something to emit.
	Seconds int64
	// Size bounds what [Stream].Size does not count, because it is not in memory.
	Size
}

// Size is how large some samples are.
type Size struct {
	Samples int
	// Bytes is about how long they are as text.
	Bytes int
}

// Fit is how many times o fits into s; a very large number for an empty o.
func (s Size) Fit(o Size) int64 {
	return int64(min(s.Samples/max(o.Samples, 1), s.Bytes/max(o.Bytes, 1)))
}

// Add is both together.
func (s Size) Add(o Size) Size { return Size{s.Samples + o.Samples, s.Bytes + o.Bytes} }

// Selection chooses some of the seconds' samples. The zero value is everything but the histogram.
type Selection struct {
	// Metrics are full names; none is all.
	Metrics []string
	// Resources are names of resources; none is all. Streams without resources have nothing if there are some.
	Resources []string
	// Histogram adds the histogram of response times.
	Histogram bool
}

// Sink takes the samples of seconds: series by series, and those of a series ascending. Series of a family come in any
// order, but none comes twice.
type Sink interface {
	// Series begins a series. The labels are sorted by name. The slices are the caller's, and change after the call.
	Series(f *table.Family, names, values []string)
	// Value is a sample of the series, at a Unix time.
	Value(unix int64, v float64)
	// Histogram is a sample of a series that is a histogram. It is the caller's, and changes after the call.
	Histogram(unix int64, h *node.Histogram)
}
