package otlp

import "github.com/windowstat/windowstat/collector"

// counts are spans by what became of them, and what else is told.
type counts struct {
	counted, duplicate, late, future, malformed, internal, otherService int64

	truncated int64 // of those counted: they began in a second that was over
	sampled   int64 // of those counted: they have a threshold
	estimated int64 // calls that these stand for
	full      int64 // requests that were refused
}

// add adds those of a request.
func (c *counts) add(o *counts) {
	c.counted += o.counted
	c.duplicate += o.duplicate
	c.late += o.late
	c.future += o.future
	c.malformed += o.malformed
	c.internal += o.internal
	c.otherService += o.otherService
	c.truncated += o.truncated
	c.sampled += o.sampled
	c.estimated += o.estimated
}

// Metrics are what a Receiver publishes on its Collector: what became of the spans so far.
func (r *Receiver) Metrics() []collector.Metric {
	read := func() counts {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.counts
	}
	count := func(name, help string, of func(counts) int64) collector.Metric {
		return collector.Metric{Name: name, Help: help, Read: func(yield func(float64, ...string)) { yield(float64(of(read()))) }}
	}
	return []collector.Metric{
		{
			Name: "otlp_spans_total", Labels: []string{"result"},
			Help: "Spans received: counted, seen before (duplicate), later than the tolerance (late), from the future, malformed, no calls (internal), of another service. Only counted ones are calls; spans that samplers drop are in no count.",
			Read: func(yield func(float64, ...string)) {
				c := read()
				yield(float64(c.counted), "counted")
				yield(float64(c.duplicate), "duplicate")
				yield(float64(c.late), "late")
				yield(float64(c.future), "future")
				yield(float64(c.malformed), "malformed")
				yield(float64(c.internal), "internal")
				yield(float64(c.otherService), "other_service")
			},
		},
		count("otlp_truncated_spans_total", "Counted spans that began in a second that was over: they pass, and are in flight, from the first second on that was open.",
			func(c counts) int64 { return c.truncated }),
		count("otlp_sampled_spans_total", "Counted spans with the threshold of a sampler. Each stands for several calls, so counts are estimates if there are any.",
			func(c counts) int64 { return c.sampled }),
		count("otlp_estimated_calls_total", "Calls that sampled spans stand for.", func(c counts) int64 { return c.estimated }),
		count("otlp_refused_requests_total", "Requests refused because too many spans were held. Their senders repeat them.",
			func(c counts) int64 { return c.full }),
	}
}
