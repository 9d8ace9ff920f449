package otlp

import "github.com/windowstat/windowstat/collector"

// counts are spans by what became of them, and what else is published.
type counts [truncated + 4]int64

// What becomes of a span.
const (
	counted = iota
	duplicate
	late
	future
	malformed
	internal
	otherService
	results
)

// What else is published.
const (
	truncated = results + iota // of those counted: they began in a second that was over
	sampled                    // of those counted: they have a threshold
	estimated                  // calls that these stand for
	refused                    // requests
)

// add adds those of a request.
func (c *counts) add(request *counts) {
	for i, n := range request {
		c[i] += n
	}
}

// metrics are what a receiver publishes on its Collector: what became of the spans so far.
func (r *receiver) metrics() []collector.Metric {
	read := func() counts {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.counts
	}
	all := []collector.Metric{{
		Name: "otlp_spans_total", Labels: []string{"result"},
		Help: "Spans received: counted, seen before (duplicate), later than the tolerance (late), from the future, malformed, no calls (internal), of another service. Only counted ones are calls; spans that samplers drop are in no count.",
		Read: func(yield func(float64, ...string)) {
			c := read()
			for i, name := range [results]string{"counted", "duplicate", "late", "future", "malformed", "internal", "other_service"} {
				yield(float64(c[i]), name)
			}
		},
	}}
	for i, x := range [...]struct{ name, help string }{
		{"otlp_truncated_spans_total", "Counted spans that began in a second that was over: they pass, and are in flight, from the first second on that was open."},
		{"otlp_sampled_spans_total", "Counted spans with the threshold of a sampler. Each stands for several calls, so counts are estimates if there are any."},
		{"otlp_estimated_calls_total", "Calls that sampled spans stand for."},
		{"otlp_refused_requests_total", "Requests refused because too many spans were held. Their senders repeat them."},
	} {
		all = append(all, collector.Metric{Name: x.name, Help: x.help, Read: func(yield func(float64, ...string)) { yield(float64(read()[truncated+i])) }})
	}
	return all
}
