package prom

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/gzipped"
	"github.com/windowstat/windowstat/exporter/internal/text"
	"github.com/windowstat/windowstat/internal/clientip"
	"github.com/windowstat/windowstat/internal/limiter"
)

// sender sends pages. It renders and compresses a page in one of ten slots, and writes it without a slot. A slow reader
// therefore holds no slot, but it holds the bytes of its page for as long as its scrape may take. The total of these
// bytes is limited to [maxUnread] plus a page; beyond that the slowest reader of the host with the most bytes is
// disconnected. See [limiter.Shares].
type sender struct {
	slots   *limiter.Slots
	unread  *limiter.Shares
	proxies []netip.Prefix
	zip     gzipped.Writers
	pages   text.Pages
	unused  sync.Pool // contents
	last    scrapeStats
}

const (
	maxResponses = 10
	// maxUnread is the maximum number of bytes that wait for readers of a page.
	maxUnread = 64 << 20
	// requestTimeout bounds the wait for a slot plus the writing of the response.
	requestTimeout = time.Minute
)

// init initializes the sender of a page: metrics or seconds.
func (s *sender) init(page string, proxies []netip.Prefix) {
	s.slots = limiter.NewSlots(maxResponses)
	s.unread = limiter.NewShares(maxUnread, limiter.EvictOldest)
	s.proxies, s.last.page = proxies, page
}

// defaultScrapeTimeout applies to a client without a timeout header. It is the default of Prometheus and
// VictoriaMetrics.
const defaultScrapeTimeout = 10 * time.Second

const timeoutHeader = "X-Prometheus-Scrape-Timeout-Seconds"

// scrapeTimeout returns the time that the client waits for the response.
func scrapeTimeout(r *http.Request) time.Duration {
	s, err := strconv.ParseFloat(r.Header.Get(timeoutHeader), 64)
	if err != nil || !(s > 0 && s < 3600) {
		return defaultScrapeTimeout
	}
	return time.Duration(s * float64(time.Second))
}

// begin prepares a response (see [limiter.Begin]) and returns a context for the wait for a slot.
func (s *sender) begin(
	w http.ResponseWriter,
	r *http.Request,
) (ctx context.Context, cancel context.CancelFunc, ok bool) {
	timeout := requestTimeout
	if r.Header.Get(timeoutHeader) != "" {
		timeout = min(scrapeTimeout(r), requestTimeout)
	}
	if !limiter.Begin(w, r, timeout+time.Second) {
		return nil, nil, false
	}
	ctx, cancel = context.WithTimeout(r.Context(), timeout)
	return ctx, cancel, true
}

func (s *sender) host(r *http.Request) string { return clientip.Of(r, s.proxies) }

// busy responds to a request that gets no page because the server is busy.
func busy(w http.ResponseWriter, err error) {
	http.Error(w, err.Error(), http.StatusServiceUnavailable)
}

// content is a page ready to be written: compressed bytes, or a page of numbers that becomes text while it is written,
// followed by bytes.
type content struct {
	page    *text.Page // nil if it is compressed
	rest    bytes.Buffer
	header  http.Header
	samples int
	size    int // of rest, before compression
}

// render returns the content of a page and of the families that follow it. The page may be nil; the sender owns it from
// now on. render panics if a family cannot be encoded: its source is wrong, and a page without it would look complete.
func (s *sender) render(format expfmt.Format, zip bool, page *text.Page, families []*dto.MetricFamily) *content {
	c, _ := s.unused.Get().(*content)
	if c == nil {
		c = new(content)
	}
	c.page, c.samples = page, 0
	c.rest.Reset()
	c.header = http.Header{"Content-Type": {string(format)}}
	out, end := io.Writer(&c.rest), func() error { return nil }
	if zip {
		c.header.Set("Content-Encoding", "gzip")
		out, end = s.zip.Start(&c.rest)
	}
	var err error
	if page != nil {
		c.samples = page.Samples()
	}
	// A compressed page is rendered completely: it is small, and a slow reader must not hold its compressor of a
	// megabyte. An uncompressed page becomes text while it is written, so that no page is in memory as text.
	if page != nil && zip {
		_, err = page.WriteTo(out)
		s.pages.Put(page)
		c.page = nil
	}
	enc := expfmt.NewEncoder(out, format)
	for _, f := range families {
		err = errors.Join(err, enc.Encode(f))
		c.samples += len(f.Metric)
	}
	// The end of an OpenMetrics page, and of the compressed one.
	err = errors.Join(err, enc.(expfmt.Closer).Close(), end())
	c.size = c.rest.Len()
	if zip { // the last field of the gzip format is the size before compression
		c.size = int(binary.LittleEndian.Uint32(c.rest.Bytes()[c.rest.Len()-4:]))
	}
	if err != nil {
		panic(err)
	}
	return c
}

// recycle returns the memory of a content to the pools.
func (s *sender) recycle(c *content) {
	if c.page != nil {
		s.pages.Put(c.page)
		c.page = nil
	}
	s.unused.Put(c)
}

// memory returns the number of bytes that the content takes.
func (c *content) memory() int {
	if c.page == nil {
		return c.rest.Cap()
	}
	return c.page.Size() + c.rest.Cap()
}

// errDropped is the error of a response that was not written because there are too many slow readers.
var errDropped = errors.New("too many slow readers")

// send writes a content to the client and flushes it.
func (s *sender) send(w http.ResponseWriter, r *http.Request, c *content, began time.Time) error {
	stop := limiter.Closing(w)
	give, ok := s.unread.Take(s.host(r), c.memory(), func() error {
		err := stop()
		if err == nil {
			s.last.dropped.Add(1)
		}
		return err
	})
	if !ok {
		s.last.dropped.Add(1)
		busy(w, errDropped)
		return errDropped
	}
	defer give()
	maps.Copy(w.Header(), c.header)
	var page int64
	var err error
	if c.page != nil {
		page, err = c.page.WriteTo(w)
	}
	if err == nil {
		_, err = w.Write(c.rest.Bytes())
	}
	// Flush here: after the handler has returned, the server would write the rest, and no code would see an error.
	if err == nil {
		err = http.NewResponseController(w).Flush()
	}
	if errors.Is(err, http.ErrNotSupported) {
		err = nil // there is no connection, for example in a test
	}
	if isScrape(r) {
		s.last.samples.Store(int64(c.samples))
		s.last.bytes.Store(page + int64(c.size))
		s.last.duration.Store(int64(time.Since(began)))
	}
	return err
}

// scrapeStats holds the cost of the last scrape of an endpoint. A response cannot include its own cost.
type scrapeStats struct {
	page                     string // value of the label
	duration, samples, bytes atomic.Int64
	dropped                  atomic.Int64 // responses that were aborted or refused
}

// isScrape reports whether r comes from a scraper: it has a cursor or a scrape timeout header. Browsers and windowstat
// top send neither.
func isScrape(r *http.Request) bool {
	return r.Header.Get(timeoutHeader) != "" || r.URL.Query().Has("cursor")
}

// metrics returns the metrics of the last scrape. They are absent before the first one.
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
		metric(
			"scrape_dropped_total",
			"",
			"Responses of a page that were aborted or refused, because slow readers had too many unread bytes.",
			&s.dropped,
			1,
		),
		metric(
			"scrape_duration_seconds",
			"seconds",
			"Duration of the last scrape of a page (metrics or seconds), including the writing of the response. "+
				"Requests with neither a cursor nor a scrape timeout header do not count as scrapes.",
			&s.duration,
			float64(time.Second),
		),
		metric("scrape_samples", "", "Samples in the response to the last scrape of a page.", &s.samples, 1),
		metric(
			"scrape_bytes",
			"bytes",
			"Size of the response to the last scrape of a page, before compression.",
			&s.bytes,
			1,
		),
	}
}
