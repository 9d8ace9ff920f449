package prom

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/windowstat/windowstat/internal/clienthost"

	"github.com/windowstat/windowstat/exporter/internal/gzipped"
	"github.com/windowstat/windowstat/exporter/internal/limiter"
)

// sender makes responses of pages. A page is computed and compressed in one of ten places, and written without one: a slow
// reader holds its bytes, for as long as its scrape may take, and nobody's place. There are [maxUnread] of those bytes and a
// page; for more the slowest reader is disconnected, see [limiter.Shares].
type sender struct {
	places  *limiter.Places
	unread  limiter.Shares
	proxies []netip.Prefix
	zip     gzipped.Writers
	buffers sync.Pool
	last    scrapeStats
}

const (
	maxResponses = 10
	// maxUnread is how many bytes may wait for the readers of a page.
	maxUnread = 64 << 20
	// requestTimeout bounds the wait for a place and the writing of the response together.
	requestTimeout = time.Minute
)

// init makes the sender of a page: metrics or seconds.
func (s *sender) init(page string, proxies []netip.Prefix) {
	s.places = limiter.NewPlaces(maxResponses)
	s.unread = limiter.Shares{Max: maxUnread, Quick: true}
	s.proxies, s.last.page = proxies, page
}

// begin prepares for a response, see [limiter.Begin], and returns a context for the wait for a place.
func (s *sender) begin(w http.ResponseWriter, r *http.Request) (ctx context.Context, cancel context.CancelFunc, ok bool) {
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

func (s *sender) host(r *http.Request) string { return clienthost.Of(r, s.proxies) }

// place waits for a place to compute a page.
func (s *sender) place(ctx context.Context, r *http.Request) (leave func(), err error) {
	return s.places.Take(ctx, s.host(r))
}

// busy responds to a request that gets no page now.
func busy(w http.ResponseWriter, err error) {
	http.Error(w, err.Error(), http.StatusServiceUnavailable)
}

// content is a page as it is written. Several responses may share one; it is reused when all have called done.
type content struct {
	bytes.Buffer
	header  http.Header
	samples int
	size    int // before compression
	users   atomic.Int32
}

// render makes the content of a page. write writes it and returns the number of samples.
func (s *sender) render(r *http.Request, contentType string, write func(io.Writer) (samples int, err error)) (*content, error) {
	c, _ := s.buffers.Get().(*content)
	if c == nil {
		c = new(content)
	}
	c.Reset()
	c.users.Store(1)
	c.header = http.Header{"Content-Type": {contentType}}
	out, end := io.Writer(c), func() error { return nil }
	if gzipped.Accepted(r) {
		c.header.Set("Content-Encoding", "gzip")
		out, end = s.zip.Start(c)
	}
	counted := &countingWriter{Writer: out}
	samples, err := write(counted)
	c.samples, c.size = samples, counted.n
	if err = errors.Join(err, end()); err != nil {
		s.done(c)
		return nil, err
	}
	return c, nil
}

// done ends the use of a content.
func (s *sender) done(c *content) {
	if c.users.Add(-1) == 0 {
		s.buffers.Put(c)
	}
}

// errDropped is the error for a response that was not written, because there are too many slow readers.
var errDropped = errors.New("too many responses are being read slowly")

// send writes a content to the client, flushes it, and is done with it.
func (s *sender) send(w http.ResponseWriter, r *http.Request, c *content, began time.Time) error {
	defer s.done(c)
	stop := limiter.Closing(w)
	give, ok := s.unread.Take(s.host(r), c.Cap(), func() error {
		err := stop()
		if err == nil {
			s.last.drop()
		}
		return err
	})
	if !ok {
		s.last.drop()
		busy(w, errDropped)
		return errDropped
	}
	defer give()
	for name, values := range c.header {
		w.Header()[name] = values
	}
	_, err := w.Write(c.Bytes())
	if err == nil {
		err = http.NewResponseController(w).Flush()
	}
	if errors.Is(err, http.ErrNotSupported) {
		err = nil // there is no connection, as in a test
	}
	s.last.record(time.Since(began), c.samples, c.size)
	return err
}
