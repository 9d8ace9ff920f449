package otlp

import "github.com/windowstat/windowstat/collector"

// counts holds the numbers of spans by result, and the other published numbers.
type counts [results + 3]int64

// Results of a span. Each span has one of them.
const (
	// counted is a span that is a call.
	counted = iota
	// duplicate is a span that was counted before.
	duplicate
	// late is a span that ended in a final second.
	late
	// future is a span that ends more than the tolerance after its arrival.
	future
	// malformed is a span without valid IDs or times.
	malformed
	// internal is a span that is not a call.
	internal
	// otherService is a span of a service that is not counted.
	otherService
	// results is the number of results.
	results
)

// resultNames are the values of the label result.
var resultNames = [results]string{
	"counted", "duplicate", "late", "future", "malformed", "internal", "other_service",
}

// Other published numbers.
const (
	// truncated is the number of counted spans that began in a sealed second.
	truncated = results + iota
	// sampled is the number of counted spans with a threshold.
	sampled
	// estimated is the number of calls that sampled spans represent.
	estimated
)

// add adds the counts of a request.
func (c *counts) add(request *counts) {
	for i, n := range request {
		c[i] += n
	}
}

// metrics returns the metrics that a receiver publishes on its Collector.
func (r *receiver) metrics() []collector.Metric {
	// Each metric reads all counts under the lock. A scrape reads four metrics, so the cost does not matter.
	read := func() counts {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.counts
	}
	all := []collector.Metric{{
		Name: "otlp_spans_total", Labels: []string{"result"},
		Help: "Received spans by result: counted as a call, duplicate of a counted span, late (after the tolerance), " +
			"from the future, malformed, internal (not a call), of another service. Spans that a sampler drops are " +
			"not received.",
		Read: func(yield func(float64, ...string)) {
			c := read()
			for i, name := range resultNames {
				yield(float64(c[i]), name)
			}
		},
	}}
	for i, x := range [...]struct{ name, help string }{
		{
			"otlp_truncated_spans_total",
			"Counted spans that began in a sealed second. They pass, and are in flight, from the first open second on.",
		},
		{
			"otlp_sampled_spans_total",
			"Counted spans with the threshold of a sampler. Each represents several calls, so counts are then " +
				"estimates.",
		},
		{"otlp_estimated_calls_total", "Calls that sampled spans represent."},
	} {
		all = append(all, collector.Metric{Name: x.name, Help: x.help, Read: func(yield func(float64, ...string)) {
			yield(float64(read()[truncated+i]))
		}})
	}
	return all
}
