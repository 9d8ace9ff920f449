package prom

import (
	"io"
	"sync"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// scrape is what the last answer of a page cost. A page cannot show its own.
type scrape struct {
	page string

	mu             sync.Mutex // guards what follows
	took           time.Duration
	samples, bytes int
}

func (s *scrape) was(took time.Duration, samples, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took, s.samples, s.bytes = took, samples, bytes
}

// metrics are those that a page publishes.
func (s *scrape) metrics() []collector.Metric {
	metric := func(name, unit, help string, value func() float64) collector.Metric {
		return collector.Metric{
			Name: name, Unit: unit, Help: help, Labels: []string{"page"},
			Read: func(yield func(float64, ...string)) {
				s.mu.Lock()
				v, any := value(), s.took > 0
				s.mu.Unlock()
				if any {
					yield(v, s.page)
				}
			},
		}
	}
	return []collector.Metric{
		metric("scrape_duration_seconds", "seconds", "Duration of the last response of a page, until it was written: metrics or seconds.", func() float64 { return s.took.Seconds() }),
		metric("scrape_samples", "", "Samples in the last response of a page.", func() float64 { return float64(s.samples) }),
		metric("scrape_bytes", "bytes", "Size of the last response of a page, before it was compressed.", func() float64 { return float64(s.bytes) }),
	}
}

// counter counts what is written through it.
type counter struct {
	io.Writer
	n int
}

// Write implements io.Writer.
func (c *counter) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.n += n
	return n, err
}
