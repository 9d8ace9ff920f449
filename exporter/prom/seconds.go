package prom

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/common/expfmt"

	"github.com/windowstat/windowstat/collector"
	"github.com/windowstat/windowstat/exporter/internal/gather"
	"github.com/windowstat/windowstat/exporter/internal/seconds"
	"github.com/windowstat/windowstat/node"
)

// Seconds serves the per-second endpoint: a sample of each sealed second of each resource, with the timestamp of the
// second. Create it with [NewSeconds]. It is safe for concurrent use. A served value never changes. The metrics are
// named differently from those of [Handler], because one series must not mix samples with and without timestamps. After
// a minute without activity, a resource and all inbound traffic have only their passes, until the next call.
//
// # Parameters
//
//   - cursor=NAME returns the seconds that this scraper has not fetched yet, oldest first. A scraper is identified by
//     the name, its host, and the selected metrics, resources and histogram. Give each server a separate name. A new
//     scraper gets the whole history.
//   - window=DURATION returns the last seconds, for example 30s, without a cursor.
//   - metric=NAME and resource=NAME select metrics and resources; both may be repeated.
//   - histogram=native adds the response time histogram of each second, a gauge histogram. The client must accept
//     protobuf.
//   - histogram=vmrange adds the same histogram as text, with a line for each non-empty bucket, for VictoriaMetrics.
//   - histogram=classic adds the histogram of all response times up to the end of each second. After idle seconds it
//     has an extra sample at the beginning of the next second, so the difference of two samples exists for each second.
//
// Without cursor and window, the response has the last 60 seconds. An invalid parameter gets status 400 with the
// reason. The Accept header chooses between text and OpenMetrics, and Accept-Encoding enables gzip. Histograms are
// available for a minute, or for Options.Windows.Histograms of the Collector; older seconds are served without one.
//
// # Receipts
//
// When a scraper requests its next seconds, the state of its last connection decides about its last response; see
// [Seconds.ConnState]:
//
//   - If the connection has begun another request, for any page, the response was read.
//   - If the connection broke, or the response is not written completely, the seconds are sent again, up to five times.
//     After a large response the next ones are half as large.
//   - If the client closed the idle connection, as a client does after a timeout, the seconds are sent again. If a
//     client closes its connection every time, each response is sent at most twice and then counts as unconfirmed.
//   - If the connection is idle and the client's machine has acknowledged every byte, and both stay so for 250 ms, or
//     for a quarter of the scrape timeout if that is shorter, the response was read. The next response waits for this
//     time. If the client closes the connection later, but within 30 s, the response counts as unconfirmed.
//   - If the connection proves nothing, the response counts as delivered but unconfirmed: without the hook, on HTTP/2,
//     HTTP/1.0 and Unix sockets, with Connection: close, after the server's IdleTimeout, and through a proxy. A proxy
//     is recognized by its address (SecondsOptions.Proxies) or by a header Via, Forwarded, X-Forwarded-For,
//     X-Forwarded-Proto, X-Request-Id or X-Envoy-….
//
// A scraper that lost its connection may therefore get a response twice. Systems other than Linux do not show which
// bytes were acknowledged; there an idle connection counts as closed.
//
// With a log, a state file holds the position of each scraper and its seconds in doubt. After a restart, a scraper that
// uses the same Host header stores samples under the same labels, and gets the seconds in doubt again. For other
// scrapers they become unconfirmed. [Seconds.Save] decides about idle connections before a server ends.
//
// # Bounds
//
// Requests of one cursor are served one at a time. At most ten pages are rendered concurrently, and a free slot goes to
// the host that has the fewest slots. A client that waits longer than its scrape timeout gets status 503. Slow readers
// are bounded as in [Handler].
//
// # Limitations
//
// If a process with a log is killed, the seconds that it has sealed but not logged are lost, usually one. A scraper may
// read a response and not store it, for example because it exceeds a limit of the server, or because the scraper is
// killed; such seconds count as delivered. Since Go 1.27 a Go client may reuse a connection with up to 256 KiB unread.
// A response that a server stops reading at its body size limit may therefore count as read, so this limit must be
// above MaxBytes. Two scrapers with the same cursor name and address get some seconds twice and miss others.
type Seconds struct {
	source       seconds.Source
	opts         SecondsOptions
	positions    string           // path of the state file; empty without a log
	self         *gather.Metrics  // nil if the page has no self-metrics
	streams      []seconds.Stream // the resources first
	line         *seconds.Line
	oldestLogged int64 // first second in the log, within the history; without a log, the first second of this process
	vmMaxBytes   int   // MaxBytes of a response to VictoriaMetrics
	cursors      *cursors
	conns        connections
	await        func(context.Context, time.Duration, <-chan struct{}) bool // the function await; tests replace it
	out          sender

	saving     sync.Mutex // guards the state file
	saveErrors atomic.Int64
}

// NewSeconds returns the endpoint, and restores the positions of scrapers if there is a Log. The error names every
// invalid option.
func NewSeconds(c *collector.Collector, o SecondsOptions) (*Seconds, error) {
	err := o.Check()
	if c == nil {
		err = errors.Join(&collector.OptionError{Package: "prom", Err: errors.New("no Collector")}, err)
	}
	if err != nil {
		return nil, err
	}
	o.defaults()
	streams := []seconds.Stream{seconds.NewResources(c, o.Namespace, o.Log)}
	if o.Sampler != nil {
		streams = append(streams, o.Sampler.Stream())
	}
	s := newSeconds(c, streams, o)
	s.oldestLogged = s.line.First()
	if o.Log != nil {
		o.Log.Logged(s.oldestLogged-s.line.History(), s.oldestLogged, func(_ string, m *node.MetricNode) bool {
			s.oldestLogged = m.Start.Unix()
			return false
		})
		if s.positions, err = o.Log.StateFile(positionsName); err != nil {
			return nil, fmt.Errorf("prom: %w; a log serves one per-second endpoint", err)
		}
		s.restore()
	}
	c.Publish(s.metrics()...)
	return s, nil
}

// NewArchivedSeconds returns an endpoint for seconds that other programs counted and logged, such as the seconds of
// package sentinellog. The streams must read all seconds that the source keeps. The options Log and Sampler must be
// nil. The error names every invalid option.
func NewArchivedSeconds(source seconds.Archive, streams []seconds.Stream, o SecondsOptions) (*Seconds, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	o.defaults()
	s := newSeconds(source, streams, o)
	var err error
	if s.positions, err = source.StateFile(positionsName); err != nil {
		return nil, fmt.Errorf("prom: %w; a source has one per-second endpoint", err)
	}
	s.restore()
	source.Publish(s.metrics()...)
	return s, nil
}

// newSeconds returns an endpoint without a file of positions.
func newSeconds(source seconds.Source, streams []seconds.Stream, o SecondsOptions) *Seconds {
	line := seconds.NewLine(source)
	s := &Seconds{
		source: source, opts: o, vmMaxBytes: o.vmMaxBytes, streams: streams, line: line,
		cursors: newCursors(o.MaxCursors, o.CursorExpiry, line),
		await:   await,
	}
	s.out.init("seconds", o.Proxies)
	return s
}

// ServeHTTP implements http.Handler.
func (s *Seconds) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	began := time.Now()
	ctx, cancel, ok := s.out.begin(w, r)
	if !ok {
		return
	}
	defer cancel()
	q, err := s.parse(r.URL.RawQuery)
	switch {
	case r.Method != http.MethodGet: // a response to HEAD would consume seconds
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "only GET is allowed", http.StatusMethodNotAllowed)
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	case q.native() && expfmt.NegotiateIncludingOpenMetrics(r.Header).FormatType() != expfmt.TypeProtoDelim:
		http.Error(
			w,
			"histogram=native requires a client that accepts protobuf, "+
				"such as Prometheus with scrape_native_histograms",
			http.StatusNotAcceptable,
		)
	case q.cursor != "":
		s.serveCursor(ctx, w, r, q, began)
	default:
		s.serveWindow(ctx, w, r, q, began)
	}
}

// serveWindow serves the last seconds, without a cursor.
func (s *Seconds) serveWindow(ctx context.Context, w http.ResponseWriter, r *http.Request, q query, began time.Time) {
	leave, err := s.out.slots.Acquire(ctx, s.out.host(r))
	if err != nil {
		busy(w, err)
		return
	}
	defer leave()
	open := s.line.Sealed(s.streams)
	from := max(s.line.Before(open, cmp.Or(q.window, defaultWindow)), s.oldest(open))
	limit := s.limit(r, &q, from, defaultScrapeTimeout)
	if n := s.line.Count(from, open); n > limit.Seconds {
		if q.window > 0 {
			http.Error(
				w,
				fmt.Sprintf(
					"window of %d seconds exceeds the limit of %d samples or %d bytes; "+
						"request at most %d seconds, or select metrics or resources",
					n,
					limit.Samples,
					limit.Bytes,
					limit.Seconds,
				),
				http.StatusBadRequest,
			)
			return
		}
		from = s.line.Before(open, limit.Seconds)
	}
	c, _ := s.page(r, q, from, open, limit)
	leave()
	_ = s.out.send(w, r, c, began) // an error means that the client has disconnected
	s.out.recycle(c)
}

// serveCursor serves the seconds that the scraper has not fetched yet.
func (s *Seconds) serveCursor(ctx context.Context, w http.ResponseWriter, r *http.Request, q query, began time.Time) {
	x := s.cursors.get(scraper{q.cursor, clientHost(r), q.filter()}, s.out.host(r), s.oldest(s.line.Open()), began)
	x.serving.Lock()
	defer x.serving.Unlock()
	if r.Context().Err() != nil {
		return // the client has disconnected
	}
	x.resume(r.Host)
	moved := false
	if x.pending != nil {
		d := s.decide(r.Context(), x.pending, min(closingWait, scrapeTimeout(r)/4))
		if d == idle {
			return // the client has disconnected
		}
		x.settle(d)
		moved = true
	}
	leave, err := s.out.slots.Acquire(ctx, s.out.host(r))
	if err != nil {
		busy(w, err)
		return
	}
	defer leave()
	open := s.line.Sealed(s.streams)
	from, end, most := x.begin(began, s.line.Before(open, s.line.Kept()), open)
	limit := s.limit(r, &q, from, scrapeTimeout(r))
	limit.Seconds = min(limit.Seconds, most)
	c, to := s.page(r, q, from, end, limit)
	lost := s.line.Count(from, min(s.line.Oldest(), to)) // during rendering
	leave()
	a := s.newResponse(w, r)
	err = s.out.send(w, r, c, began)
	complete := err == nil && r.Context().Err() == nil
	x.sent(a, from, to, c.samples, complete, lost)
	s.out.recycle(c)
	switch moved = moved || complete && from < to; {
	case moved && a != nil:
		a.conn.saveWhenIdle() // saving here would delay the end of the response
	case moved:
		s.save()
	}
}

// oldest returns the oldest second for a new scraper.
func (s *Seconds) oldest(open int64) int64 {
	return max(s.line.Before(open, s.line.History()), s.oldestLogged)
}

// limit returns the limit of a response that begins with the second from. A client with a scrape timeout below the
// default gets proportionally fewer samples.
func (s *Seconds) limit(r *http.Request, q *query, from int64, timeout time.Duration) seconds.Limit {
	var second seconds.Size
	for _, stream := range s.streams {
		second = second.Add(stream.Size(&q.Selection, from))
	}
	most := seconds.Size{Samples: s.opts.MaxSamples, Bytes: s.opts.MaxBytes}
	if strings.HasPrefix(r.UserAgent(), "vm_promscrape") {
		most.Bytes = s.vmMaxBytes
	}
	most.Samples = max(int(float64(most.Samples)*min(timeout.Seconds()/defaultScrapeTimeout.Seconds(), 1)), 1)
	fit := most.Fit(second)
	if q.Histogram == seconds.Cumulative {
		fit--
	}
	return seconds.Limit{Seconds: max(fit, 1), Size: most}
}
