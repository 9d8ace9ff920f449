package prom

import (
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// scrapeStats is the cost of the last scrape of an endpoint; a response cannot include its own.
type scrapeStats struct {
	page string // value of the label

	mu             sync.Mutex // guards what follows
	duration       time.Duration
	samples, bytes int
	dropped        int
}

// drop counts a response that was broken off or refused.
func (s *scrapeStats) drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dropped++
}

func (s *scrapeStats) record(duration time.Duration, samples, bytes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.duration, s.samples, s.bytes = duration, samples, bytes
}

// isScrape reports whether a server scrapes: it has a cursor, or says how long it waits. Whoever looks, in a browser or with
// windowstat top, does neither.
func isScrape(r *http.Request) bool {
	return r.Header.Get(timeoutHeader) != "" || r.URL.Query().Has("cursor")
}

// metrics returns the metrics about the last scrape. They have no values before the first one.
func (s *scrapeStats) metrics() []collector.Metric {
	metric := func(name, unit, help string, value func() float64) collector.Metric {
		return collector.Metric{
			Name: name, Unit: unit, Help: help, Labels: []string{"page"},
			Read: func(yield func(float64, ...string)) {
				s.mu.Lock()
				v, ok := value(), s.duration > 0
				s.mu.Unlock()
				if ok || v > 0 {
					yield(v, s.page)
				}
			},
		}
	}
	return []collector.Metric{
		metric("scrape_dropped_total", "", "Responses of a page that were broken off or refused, because too many were being read slowly.", func() float64 { return float64(s.dropped) }),
		metric("scrape_duration_seconds", "seconds", "Duration of the last scrape of a page, metrics or seconds, until its response was written. A request that has neither a cursor nor a scraper's timeout is no scrape.", func() float64 { return s.duration.Seconds() }),
		metric("scrape_samples", "", "Samples in the response to the last scrape of a page.", func() float64 { return float64(s.samples) }),
		metric("scrape_bytes", "bytes", "Size of the response to the last scrape of a page, before it was compressed.", func() float64 { return float64(s.bytes) }),
	}
}

// countingWriter counts the bytes written through it.
type countingWriter struct {
	io.Writer
	n int
}

// Write implements io.Writer.
func (c *countingWriter) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	c.n += n
	return n, err
}
