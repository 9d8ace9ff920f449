package prom

import (
	"io"
	"sync"
	"time"

	"github.com/windowstat/windowstat/exporter"
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

// Self implements [exporter.Source].
func (s *scrape) Self(yield func(name string, value float64, labels ...string)) {
	s.mu.Lock()
	took, samples, bytes := s.took, s.samples, s.bytes
	s.mu.Unlock()
	if took == 0 {
		return // there was no answer yet
	}
	yield(exporter.ScrapeDuration, took.Seconds(), s.page)
	yield(exporter.ScrapeSamples, float64(samples), s.page)
	yield(exporter.ScrapeBytes, float64(bytes), s.page)
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
