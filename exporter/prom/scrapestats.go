package prom

import (
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/collector"
)

// scrapeStats is the cost of the last scrape of an endpoint; a response cannot include its own.
type scrapeStats struct {
	page                     string // value of the label
	duration, samples, bytes atomic.Int64
	dropped                  atomic.Int64 // responses that were broken off or refused
}

func (s *scrapeStats) record(duration time.Duration, samples, bytes int) {
	s.samples.Store(int64(samples))
	s.bytes.Store(int64(bytes))
	s.duration.Store(int64(duration))
}

// isScrape reports whether a server scrapes: it has a cursor, or says how long it waits. Whoever looks, in a browser or with
// windowstat top, does neither.
func isScrape(r *http.Request) bool {
	return r.Header.Get(timeoutHeader) != "" || r.URL.Query().Has("cursor")
}

// metrics returns the metrics about the last scrape. They have no values before the first one.
func (s *scrapeStats) metrics() []collector.Metric {
	metric := func(name, unit, help string, n *atomic.Int64, scale float64) collector.Metric {
		return collector.Metric{
			Name: name, Unit: unit, Help: help, Labels: []string{"page"},
			Read: func(yield func(float64, ...string)) {
				if v := n.Load(); v > 0 || s.duration.Load() > 0 {
					yield(float64(v)/scale, s.page)
				}
			},
		}
	}
	return []collector.Metric{
		metric("scrape_dropped_total", "", "Responses of a page that were broken off or refused, because too many were being read slowly.", &s.dropped, 1),
		metric("scrape_duration_seconds", "seconds", "Duration of the last scrape of a page, metrics or seconds, until its response was written. A request that has neither a cursor nor a scraper's timeout is no scrape.", &s.duration, float64(time.Second)),
		metric("scrape_samples", "", "Samples in the response to the last scrape of a page.", &s.samples, 1),
		metric("scrape_bytes", "bytes", "Size of the response to the last scrape of a page, before it was compressed.", &s.bytes, 1),
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
