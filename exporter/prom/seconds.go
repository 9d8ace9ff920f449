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

// Seconds is the per-second endpoint: a sample for each sealed second of each resource, with the timestamp of that second. A
// value that was served never changes. A resource that has been idle for a minute has its passes alone, until its next call; so
// has all inbound traffic. The metrics have names of their own, because samples with and without timestamps must
// not be mixed in one series. It takes these parameters:
//
//   - cursor=NAME: the seconds that this scraper has not fetched yet, oldest first. A scraper is a name, the host it asks
//     from, and what it asks for; give each server its own name. A new scraper gets the whole history.
//   - window=DURATION: the last seconds, such as 30s, without a position.
//   - metric=NAME, resource=NAME: only these; may be repeated.
//   - histogram=native: adds the histogram of the response times of each second alone, a gauge histogram. It needs a client that
//     accepts protobuf.
//   - histogram=vmrange: adds the same as text, with a line for each bucket that is not empty, as VictoriaMetrics has them.
//   - histogram=classic: adds the histogram of all response times up to the end of each second, with the timestamp of that. After
//     an idle time it begins again with a sample at the beginning of the second, so that the difference of two is there for each.
//
// Histograms are kept for a minute, or for Options.Windows.Histograms of the Collector; older seconds have none.
//
// Without cursor and window it serves the last 60 seconds. An invalid parameter is answered with 400 and the reason. The
// Accept header chooses text or OpenMetrics, and gzip is used if the client accepts it.
//
// The connection is the receipt, with the hook [Seconds.ConnState]. When the scraper requests its next seconds, its last response
//
//   - was read if its connection has begun another request, of any page;
//   - is sent again if the connection broke or if the response is still being written, up to five times. If the response was
//     large, the next ones are half as large;
//   - is sent again if the client closed the idle connection, as a client does whose scrape timed out. If a client closes its
//     connections each time, Seconds sends each response at most twice, and then counts it as unconfirmed;
//   - was read if the connection is idle, the client's machine has acknowledged every byte, and both stay so for 250 ms, or a
//     quarter of the scrape timeout if that is less. The next response waits for that long. If the client closes the
//     connection later, but within 30 s, the response becomes unconfirmed;
//   - is delivered but unconfirmed where the connection proves nothing: without the hook, on HTTP/2, HTTP/1.0 and Unix sockets, with
//     Connection: close, when the server closes it after its IdleTimeout, and behind a proxy. That is known by its address
//     (SecondsOptions.Proxies) or by a header Via, Forwarded, X-Forwarded-For, X-Forwarded-Proto, X-Request-Id or X-Envoy-….
//
// A scraper that lost its connection may therefore get a response twice. Systems other than Linux do not show which bytes were
// acknowledged: there an idle connection counts as closed.
//
// With a log, positions are saved in a file, with the seconds in doubt: those of the last response. After a restart they
// are sent again to a scraper that asks with the same header Host, and so has them under the same labels; else they are
// unconfirmed. [Seconds.Save] decides about idle connections before a server ends.
//
// Seconds must be made with [NewSeconds], and is safe for concurrent use. Requests of one cursor are served one after the
// other. At most ten pages are computed at a time, and places go to the host that has the fewest; a client that waits longer than
// its scrape timeout gets 503. Slow readers are bounded as those of [Handler] are.
//
// Limitations: with a log, the seconds that were sealed but not logged when the process was killed are lost, usually one. A
// scraper that has read a response and does not store it, because it is over a limit of its own, has it all the same; so has one
// that was killed what it read before the last response. Since Go 1.27 a client in Go may keep a connection of which it has left
// up to 256 KiB unread, so a limit of its own on the size of a body must be above MaxBytes. Two scrapers that share a cursor
// name and an address get seconds twice and miss others.
type Seconds struct {
	source       seconds.Source
	opts         SecondsOptions
	positions    string           // path of the file of positions; empty without a log
	self         *gather.Metrics  // nil if windowstat's own metrics are not on the page
	streams      []seconds.Stream // the resources first
	line         *seconds.Line
	oldestLogged int64 // the first second in the log, within the history; the first of this process if there is none
	vmMaxBytes   int   // of a response to VictoriaMetrics
	cursors      *cursors
	conns        connections
	await        func(context.Context, time.Duration, <-chan struct{}) bool // await, unless a test replaces it
	out          sender

	saving     sync.Mutex // guards the file of positions
	saveErrors atomic.Int64
}

// NewSeconds makes the endpoint, and restores the positions of scrapers if there is a Log. The error names every invalid
// option.
func NewSeconds(c *collector.Collector, o SecondsOptions) (*Seconds, error) {
	err := o.Check()
	if c == nil {
		err = errors.Join(&collector.OptionError{Package: "prom", Err: errors.New("no Collector")}, err)
	}
	if err != nil {
		return nil, err
	}
	vmMaxBytes := cmp.Or(o.MaxBytes, 15<<20)
	o.defaults()
	line := seconds.NewLine(c)
	streams := []seconds.Stream{seconds.NewResources(c, o.Namespace, o.Log)}
	if o.Sampler != nil {
		streams = append(streams, o.Sampler.Stream())
	}
	s := &Seconds{
		source: c, opts: o, vmMaxBytes: vmMaxBytes, streams: streams, line: line,
		cursors: newCursors(o.MaxCursors, o.CursorExpiry, line),
		await:   await,
	}
	s.out.init("seconds", o.Proxies)
	s.oldestLogged = line.First()
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
	case r.Method != http.MethodGet: // a response without a body would consume seconds
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "only GET is allowed", http.StatusMethodNotAllowed)
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadRequest)
	case q.native() && expfmt.NegotiateIncludingOpenMetrics(r.Header).FormatType() != expfmt.TypeProtoDelim:
		http.Error(w, "the native histogram needs a client that accepts protobuf, such as Prometheus with scrape_native_histograms",
			http.StatusNotAcceptable)
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
			http.Error(w, fmt.Sprintf("%d seconds are more than the %d samples or %d bytes that a response may have; ask for %d seconds, or for some metrics or resources only",
				n, limit.Samples, limit.Bytes, limit.Seconds), http.StatusBadRequest)
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
	from, end, most := x.begin(began, s.line.Before(open, s.line.History()), open)
	limit := s.limit(r, &q, from, scrapeTimeout(r))
	limit.Seconds = min(limit.Seconds, most)
	c, to := s.page(r, q, from, end, limit)
	lost := s.line.Count(from, min(s.line.Oldest(), to)) // while the page was made
	leave()
	a := s.newResponse(w, r)
	err = s.out.send(w, r, c, began)
	complete := err == nil && r.Context().Err() == nil
	x.sent(a, from, to, c.samples, complete, lost)
	s.out.recycle(c)
	switch moved = moved || complete && from < to; {
	case moved && a != nil:
		a.conn.saveWhenIdle() // the response would not end before the disk has it
	case moved:
		s.save()
	}
}

// oldest returns the first second for a new scraper.
func (s *Seconds) oldest(open int64) int64 {
	return max(s.line.Before(open, s.line.History()), s.oldestLogged)
}

// limit bounds a response that begins with the second from. A client with a timeout below the default gets fewer samples.
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
